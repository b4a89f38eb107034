# SPDX-License-Identifier: Apache-2.0

# Runs a command that handles an account key, and says where in its memory the key is: when it is asked, and when the
# command ends. Needs root.
#
#     memory-search.py [--key-file FILE] COMMAND ARGUMENTS...
#
# It reads lines: `type KEY` gives the command the key on standard input, without the line's end; `enter` gives it that;
# `say LINE` gives it a line that is no secret, and `pass LINE` a passphrase, which is looked for from then on;
# `look` looks through the memory now, and answers `found NAME...`; `drain` reads the command's standard output, which
# is a full pipe until then, so that a command that prints is held there, and tells each line: `printed LINE`. When
# the command has ended, `left NAME...` says what was in its memory when the last of its threads stopped, and `at ...`
# where. A command that prints the key need not be told to the search: the first key found in it is the one. Of a
# command that reads it from a file, FILE tells it.

import ctypes
import fcntl
import hashlib
import hmac
import os
import re
import sys
import threading

SEIZE, CONTINUE = 0x4206, 7
TRACE_CLONE, TRACE_EXIT, KILL_ON_EXIT = 0x8, 0x40, 0x100000
EXIT, WALL = 6, 0x40000000

# The characters of a QR code in alphanumeric mode (ISO/IEC 18004, table 5).
CODE_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:"
ALPHABET = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l"
KEY = re.compile(rb"baton1(?:-?[%s]){39}" % ALPHABET)


def code_words(text):
    """The data of the QR code of a key, behind mode and length, which end within the second byte."""
    values = [CODE_ALPHABET.index(c) for c in text.upper()]
    bits = "0" * 13 + "".join(f"{45 * a + b:011b}" for a, b in zip(values[::2], values[1::2]))
    return bytes(int(bits[at : at + 8], 2) for at in range(16, len(bits) - 7, 8))


def forms(text):
    """What a key is, and what is as good as it."""
    values = bytes(ALPHABET.index(c) for c in text.replace(b"-", b"").removeprefix(b"baton1"))
    bits = "".join(f"{value:05b}" for value in values[1:33])
    secret = int(bits, 2).to_bytes(20, "big")
    root = hmac.digest(b"baton/1", secret, "sha256")
    seed = hmac.digest(root, b"ca-ed25519\x01", "sha256")
    plain = text.replace(b"-", b"")
    named = {
        "text": [text, plain, plain[6:38]],
        # For a QR code. The first bytes of freed memory are overwritten by malloc's lists: the last ones are telling.
        "code": [text.upper()[-14:], code_words(text)[-12:]],
        "values": [values[1:33]],
        "secret": [secret],
        # As the hash takes it: RFC 2104.
        "root": [root, bytes(byte ^ 0x36 for byte in root), bytes(byte ^ 0x5C for byte in root)],
        # The seed of RFC 8032, and the half of its hash that no bits are changed in.
        "authority": [seed, hashlib.sha512(seed).digest()[32:]],
    }
    return [(name, form) for name, forms in named.items() for form in forms]


class Search:
    def __init__(self):
        self.needles = None
        self.lock = threading.Lock()

    def learn(self, text):
        self.needles = forms(text)

    def learn_passphrase(self, text):
        self.needles.append(("passphrase", text))

    def look(self, task):
        """Names of what is in the memory of a thread's process, and where; None where there is no memory any more."""
        with self.lock:
            try:
                return self.look_through(task)
            except OSError:
                return None

    def look_through(self, task):
        found, places, is_read = set(), [], False
        with open(f"/proc/{task}/maps") as maps, open(f"/proc/{task}/mem", "rb", 0) as memory:
            for line in maps:
                fields = line.split()
                start, end = (int(bound, 16) for bound in fields[0].split("-"))
                if not fields[1].startswith("rw"):
                    continue
                behind = b""
                while start < end:
                    try:
                        memory.seek(start)
                        part = memory.read(min(end - start, 1 << 20))
                    except OSError:
                        break
                    if not part:
                        break
                    is_read = True
                    piece = behind + part
                    if self.needles is None and (key := KEY.search(piece)):
                        self.learn(key.group())
                    for name, form in self.needles or []:
                        if (index := piece.find(form)) >= 0:
                            found.add(name)
                            places.append(f"{name} {start - len(behind) + index:x} {' '.join(fields[5:]) or fields[0]}")
                    behind = piece[-64:]
                    start += len(part)
        return (found, places) if is_read else None


def ptrace(request, thread, data):
    if libc.ptrace(request, thread, None, data) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long

search, arguments = Search(), sys.argv[1:]
if arguments[0] == "--key-file":
    with open(arguments[1], "rb") as file:
        search.learn(file.read().strip())
    del arguments[:2]
go, begin = os.pipe()
keys, keyboard = os.pipe()
printed, output = os.pipe()
SET_PIPE_SIZE = 1031
room = fcntl.fcntl(output, SET_PIPE_SIZE, 4096)
os.write(output, b"\n" * room)
command = os.fork()
if command == 0:
    os.read(go, 1)
    os.dup2(keys, 0)
    os.dup2(output, 1)
    os.execvp(arguments[0], arguments)
for end in (go, keys, output):
    os.close(end)
ptrace(SEIZE, command, TRACE_CLONE | TRACE_EXIT | KILL_ON_EXIT)
os.write(begin, b"!")


def say(*words):
    print(*words, flush=True)


def threads():
    try:
        return os.listdir(f"/proc/{command}/task")
    except OSError:
        return []


def obey():
    for line in sys.stdin:
        order, _, text = line.rstrip("\n").partition(" ")
        if order == "type":
            search.learn(text.encode())
            os.write(keyboard, text.encode())
        elif order in ("say", "pass"):
            if order == "pass":
                search.learn_passphrase(text.encode())
            os.write(keyboard, text.encode() + b"\n")
        elif order == "enter":
            os.write(keyboard, b"\n")
            os.close(keyboard)
        elif order == "look":
            # A thread that has ended has no memory, the first one among them.
            results = (search.look(thread) for thread in threads())
            say("found", *sorted(next((result[0] for result in results if result), [])))
        elif order == "drain":
            draining.start()


def drain():
    with open(printed, "rb") as reader:
        for line in iter(reader.readline, b""):
            if line.strip():
                say("printed", line.decode().rstrip("\n"))


draining = threading.Thread(target=drain)
threading.Thread(target=obey, daemon=True).start()
left, status = None, None
while True:
    try:
        thread, status_word = os.waitpid(-1, WALL)
    except ChildProcessError:
        break
    if os.WIFSTOPPED(status_word):
        event, signal = status_word >> 16, os.WSTOPSIG(status_word)
        if event == EXIT:
            # Of the last thread that stops there is the memory as it was at the end.
            left = search.look(thread) or left
        try:
            ptrace(CONTINUE, thread, 0 if event else signal)
        except OSError:
            pass  # Killed meanwhile.
    elif thread == command:
        status = os.waitstatus_to_exitcode(status_word)
if draining.ident:
    draining.join()
found, places = left
for place in places:
    say("at", place)
say("left", *sorted(found))
sys.exit(status)
