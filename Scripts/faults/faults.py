# SPDX-License-Identifier: Apache-2.0

"""The ways in which a transfer is cut. Each is a function that does it, and returns what mends it."""

import os
import signal
import subprocess
import time

import documents
from hosts import Trouble, end


#: Seconds of silence after which either side has given the connection up (`Limits.idleInterval` and `pingDeadline`).
BEYOND_LIVENESS = 35


def nothing() -> None:
    """What mends a fault that passes by itself."""


def kill_origin(transfer):
    """kill -9 of the origin's node"""
    return kill_node(transfer, transfer.origin)


def kill_continuing(transfer):
    """kill -9 of the continuing node"""
    return kill_node(transfer, transfer.continuing)


def kill_node(transfer, host):
    offered = transfer.activity
    host.node.kill()
    host.node.wait()
    time.sleep(transfer.chance.choice([0, 0.3, 2]))

    def mend():
        host.node = None
        host.start_node()
        transfer.node_was_killed(host, offered)

    return mend


def kill_command(transfer):
    """kill -9 of baton accept"""
    transfer.accepting.kill()
    return nothing


def suspend(transfer):
    """a node stands still for seconds"""
    host = transfer.chance.choice([transfer.origin, transfer.continuing])
    host.node.send_signal(signal.SIGSTOP)

    def mend():
        host.node.send_signal(signal.SIGCONT)

    transfer.wait(transfer.chance.choice([0.2, 2, BEYOND_LIVENESS]))
    return mend


def link_down(transfer):
    """a cable is pulled, and plugged in again"""
    host = transfer.chance.choice([transfer.origin, transfer.continuing])
    lab(host, "link", "down")
    transfer.wait(transfer.chance.choice([0.1, 1, 5, BEYOND_LIVENESS]))
    return lambda: lab(host, "link", "up")


def address_changed(transfer):
    """a host gets another address"""
    host = transfer.chance.choice([transfer.origin, transfer.continuing])
    own, other = (f"10.77.0.{number}" for number in (host.number, 100 + host.number))
    host.change_address(other if host.address == own else own)
    return nothing


def avahi_killed(transfer):
    """kill -9 of a host's Avahi"""
    host = transfer.chance.choice([transfer.origin, transfer.continuing])
    lab(host, "avahi", "kill")
    transfer.wait(transfer.chance.choice([0, 2]))
    return lambda: lab(host, "avahi", "start")


def disk_full(transfer):
    """the destination's disk is full, and then emptied"""
    filler = os.path.join(transfer.destination, b"filler")
    # To the last page.
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass

    def mend():
        os.unlink(filler)

    transfer.wait(10)
    return mend


def source_edited(transfer):
    """the source is edited"""
    for _ in range(transfer.chance.choice([1, 1, 2, 5])):
        transfer.said.append(documents.edit(transfer.chance, transfer.source))
        transfer.note_version()
        transfer.wait(transfer.chance.choice([0, 0.1, 0.5]))
    return nothing


ALL = [
    kill_origin, kill_continuing, kill_command, suspend, link_down, address_changed, avahi_killed, disk_full,
    source_edited,
]


def lab(host, what: str, how: str) -> None:
    command = [*host.lab, what, str(host.number), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise Trouble(f"{' '.join(command)}: {done.stderr.strip()[-200:]}")


def end_quietly(process: subprocess.Popen) -> None:
    """Ends what may have ended by itself."""
    end(process, seconds=10)
    if process.stdout:
        process.stdout.close()
