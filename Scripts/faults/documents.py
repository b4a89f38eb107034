# SPDX-License-Identifier: Apache-2.0

"""Random documents: making them, editing them, and telling one version from another."""

import hashlib
import os
import random
import shutil
import stat
import zlib

MEGABYTE = 1 << 20


def noise(chance: random.Random, count: int) -> bytes:
    """Bytes that cannot be compressed."""
    return chance.randbytes(count)


def make(chance: random.Random, path: bytes, largest: int) -> None:
    """A random file or folder at a path."""
    if chance.random() < 0.5:
        make_file(chance, path, largest)
        return
    os.mkdir(path)
    fill(chance, path, depth=0, left=[chance.randint(1, 60), largest])
    stamp(chance, path)


def make_file(chance: random.Random, path: bytes, largest: int) -> None:
    kind = chance.random()
    with open(path, "wb") as file:
        if kind < 0.05:
            pass
        elif kind < 0.25:
            # Holes, with noise between.
            size = chance.randint(1, 4 * largest)
            file.truncate(size)
            for _ in range(chance.randint(0, 3)):
                file.seek(chance.randrange(size))
                file.write(noise(chance, chance.randint(1, 200_000)))
        elif kind < 0.4:
            file.write(b"what can be compressed, line by line\n" * chance.randint(1, largest // 40))
        else:
            for _ in range(chance.randint(1, max(1, largest // MEGABYTE))):
                file.write(noise(chance, MEGABYTE))
            file.write(noise(chance, chance.randrange(MEGABYTE)))
    if chance.random() < 0.3:
        os.chmod(path, 0o755)
    stamp(chance, path)


def make_unreserved(chance: random.Random, path: bytes, largest: int) -> None:
    """A file that begins with a hole: no room is reserved for it, so that the disk can become full under it."""
    with open(path, "wb") as file:
        file.seek(MEGABYTE)
        for _ in range(chance.randint(4, max(8, largest // MEGABYTE))):
            file.write(noise(chance, MEGABYTE))
    stamp(chance, path)


def fill(chance: random.Random, folder: bytes, depth: int, left: list[int]) -> None:
    """Entries of a folder; `left` is how many may still come, and how many bytes."""
    for number in range(chance.randint(1, 12)):
        if left[0] <= 0:
            return
        left[0] -= 1
        path = os.path.join(folder, name(chance, number))
        kind = chance.random()
        if kind < 0.2 and depth < 5:
            os.mkdir(path)
            fill(chance, path, depth + 1, left)
            stamp(chance, path)
        elif kind < 0.3:
            os.symlink(chance.choice([b"nothing", b"./x", name(chance, 0)]), path)
        else:
            size = chance.choice([0, 100, 4096, 70_000, MEGABYTE, 5 * MEGABYTE, max(0, left[1] // 3)])
            if size < MEGABYTE:
                with open(path, "wb") as file:
                    file.write(noise(chance, chance.randint(0, size)))
                stamp(chance, path)
            elif left[1] > 0:
                make_file(chance, path, min(size, left[1]))
                left[1] -= size


def name(chance: random.Random, number: int) -> bytes:
    """A name that no other entry of the folder has; some are no UTF-8."""
    odd = bytes(byte for byte in chance.randbytes(chance.randint(0, 12)) if byte not in b"\0/")
    return b"%d-" % number + (odd if chance.random() < 0.3 else b"entry.bin")


def stamp(chance: random.Random, path: bytes) -> None:
    nanoseconds = chance.randrange(10**9, 1_700_000_000 * 10**9)
    os.utime(path, ns=(nanoseconds, nanoseconds))


def edit(chance: random.Random, path: bytes) -> str:
    """Changes a document as a user might, and says how."""
    if os.path.isdir(path):
        files = [os.path.join(where, entry) for where, _, names in os.walk(path) for entry in sorted(names)]
        files = [file for file in files if not os.path.islink(file)]
        kind = chance.choice(["adds", "removes", "edits"] if files else ["adds"])
        if kind == "adds":
            make_file(chance, os.path.join(path, b"added-%d" % chance.randrange(10**6)), MEGABYTE)
            return "a file is added"
        if kind == "removes":
            os.unlink(chance.choice(files))
            return "a file is removed"
        path = chance.choice(files)
    size = os.path.getsize(path)
    kind = chance.choice(["in place", "cut short", "made longer", "replaced", "given a byte more at its beginning"])
    if kind == "in place" and size:
        with open(path, "r+b") as file:
            file.seek(chance.randrange(size))
            file.write(noise(chance, 1000))
    elif kind == "cut short" and size:
        os.truncate(path, chance.randrange(size))
    elif kind == "given a byte more at its beginning" and size < 64 * MEGABYTE:
        with open(path, "rb") as file:
            content = file.read()
        replace(path, b"!" + content)
    elif kind == "replaced":
        replace(path, noise(chance, chance.randint(0, 3 * MEGABYTE)))
    else:
        with open(path, "ab") as file:
            file.write(noise(chance, chance.randint(1, MEGABYTE)))
        kind = "made longer"
    return "a file is " + ("edited in place" if kind == "in place" else kind)


def replace(path: bytes, content: bytes) -> None:
    """As editors save: another file takes the name."""
    with open(path + b".new", "wb") as file:
        file.write(content)
    os.rename(path + b".new", path)


def version(path: bytes) -> dict[bytes, tuple]:
    """What a document is: path, kind, content, whether it may be executed, time."""
    found = {}

    def add(where: bytes, key: bytes) -> None:
        status = os.lstat(where)
        if stat.S_ISLNK(status.st_mode):
            found[key] = ("link", os.readlink(where))
        elif stat.S_ISDIR(status.st_mode):
            found[key] = ("folder", status.st_mtime_ns)
            for entry in sorted(os.listdir(where)):
                add(os.path.join(where, entry), os.path.join(key, entry))
        else:
            with open(where, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found[key] = ("file", status.st_size, digest, bool(status.st_mode & 0o100), status.st_mtime_ns)

    add(path, b"")
    return found


def distinct(path: bytes, known: dict[bytes, int]) -> None:
    """Notes what of a version has to cross once: each megabyte of a file by its digest, and its size when compressed."""
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(where, entry) for where, _, names in os.walk(path) for entry in names]
    for name in files:
        if os.path.islink(name):
            continue
        with open(name, "rb") as file:
            while piece := file.read(MEGABYTE):
                digest = hashlib.sha256(piece).digest()
                if digest not in known:
                    known[digest] = len(zlib.compress(piece, 1))


def size_of(found: dict[bytes, tuple]) -> int:
    return sum(entry[1] for entry in found.values() if entry[0] == "file")


def difference(one: dict[bytes, tuple], other: dict[bytes, tuple]) -> str:
    """The first entries in which two versions differ, for people."""
    keys = [key for key in sorted(set(one) | set(other)) if one.get(key) != other.get(key)]
    return "; ".join(f"{key!r}: {one.get(key)} and {other.get(key)}" for key in keys[:3])


def remove(path: bytes) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
