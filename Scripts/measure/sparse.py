"""A file that is nearly all hole: how long it takes, how much of it is stored, and memory meanwhile."""

import os
import random

import goals
from hosts import Host, Trouble, end, now
from statistic import mebibytes, table

#: Places that hold data, of 64 KiB each.
ISLANDS = 64
SEED = 20261122


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
    stored = os.stat(copy).st_blocks * 512
    with open(source, "rb") as one, open(copy, "rb") as other:
        if os.stat(copy).st_size != size:
            raise Trouble(f"{copy} has {os.stat(copy).st_size} bytes")
        # Where the source has data; and what is not there has to be a hole in both.
        place = 0
        while True:
            try:
                place = os.lseek(one.fileno(), place, os.SEEK_DATA)
            except OSError:
                break
            until = os.lseek(one.fileno(), place, os.SEEK_HOLE)
            if os.pread(one.fileno(), until - place, place) != os.pread(other.fileno(), until - place, place):
                raise Trouble(f"{copy} differs between {place} and {until}")
            place = until
    end(offer)
    os.unlink(source)
    os.unlink(copy)
    os.rmdir(folder)
    table(
        f"A sparse file of {size / 1024**3:.0f} GiB with {ISLANDS * 64} KiB of data (seed {SEED})",
        ["", "time", "stored at the continuing host", "memory, origin's node", "memory, continuing node"],
        [["baton", f"{seconds:.1f} s", mebibytes(stored), *map(mebibytes, memory)]],
    )
    return [goals.small("a sparse file", memory)]
