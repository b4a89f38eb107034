# SPDX-License-Identifier: Apache-2.0

"""A file that is nearly all hole: how long it takes, how much of it is stored, and memory meanwhile."""

import errno
import os
import random
from collections.abc import Iterator

import goals
from hosts import Host, Trouble, end, now
from statistic import mebibytes, table

#: Places that hold data, of 64 KiB each.
ISLANDS = 64
SEED = 20261122
#: Bytes that are compared at once.
STEP = 1 << 20


def measure(hosts: list[Host], size: int) -> list[goals.Goal]:
    origin, continuing = hosts[0], hosts[1]
    source = f"{origin.home}/sparse.bin"
    noise = random.Random(SEED)
    with open(source, "wb") as file:
        for _ in range(ISLANDS):
            file.seek(noise.randrange(size >> 16) << 16)
            file.write(noise.randbytes(1 << 16))
        file.truncate(size)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in hosts[:2]:
        host.forget_peak_memory()
    folder = f"{continuing.home}/received"
    os.makedirs(folder)
    began = now()
    continuing.baton("accept", event["id"], "--to", folder)
    seconds = now() - began
    memory = [host.peak_memory() for host in hosts[:2]]
    copy = f"{folder}/sparse.bin"
    status = os.stat(copy)
    stored = status.st_blocks * 512
    # Where one piece ends the disk may give a block more, and what says where the pieces are takes some.
    room = compare(source, copy) + ISLANDS * status.st_blksize
    end(offer)
    os.unlink(source)
    os.unlink(copy)
    os.rmdir(folder)
    table(
        f"A sparse file of {size / 1024**3:.0f} GiB with {ISLANDS * 64} KiB of data (seed {SEED})",
        ["", "time", "stored at the continuing host", "memory, origin's node", "memory, continuing node"],
        [["baton", f"{seconds:.1f} s", mebibytes(stored), *map(mebibytes, memory)]],
    )
    return [
        goals.small("a sparse file", memory),
        goals.limit(
            "room of a sparse file", f"its data, and a block for each piece: {mebibytes(room)}", mebibytes(stored),
            stored <= room,
        ),
    ]


def compare(source: str, copy: str) -> int:
    """Makes sure that a copy has what its source has, wherever one of them has no hole.

    Returns the bytes of the source that are in none."""
    with open(source, "rb") as one, open(copy, "rb") as other:
        files = (one.fileno(), other.fileno())
        sizes = [os.fstat(file).st_size for file in files]
        if sizes[0] != sizes[1]:
            raise Trouble(f"{copy} has {sizes[1]} bytes, and not {sizes[0]}")
        for start, until in [*pieces(files[0]), *pieces(files[1])]:
            for place in range(start, until, STEP):
                count = min(STEP, until - place)
                if os.pread(files[0], count, place) != os.pread(files[1], count, place):
                    raise Trouble(f"{copy} differs between {place} and {place + count}")
        return sum(until - start for start, until in pieces(files[0]))


def pieces(file: int) -> Iterator[tuple[int, int]]:
    """Where an open file has data: what lies between is a hole."""
    until = 0
    while True:
        try:
            start = os.lseek(file, until, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        until = os.lseek(file, start, os.SEEK_HOLE)
        yield start, until
