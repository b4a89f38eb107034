# SPDX-License-Identifier: Apache-2.0

"""What the nodes allocate for each chunk of a document, on the heap and beside it, once it flows."""

import mmap
import os
import shutil
import struct
import subprocess

import goals
import race
from hosts import Host, Trouble, end
from statistic import table

CHUNK = 1 << 20
# Fewer than the TLS records that a chunk takes: nothing is allocated for each of them.
BOUND = CHUNK // (16 << 10)
# Bytes of them: a small part of a chunk, so that nothing is allocated for its content.
BYTE_BOUND = CHUNK // 64
# Bytes that are mapped for one: received chunks lie in memory beside the heap, which is used again. Without that it is
# twice a chunk, since as much again is mapped to find a multiple of 2 MiB.
MAPPED_BOUND = CHUNK // 4


class Counter:
    """Counts of one node: a page of memory that the node's malloc and mmap count into."""

    def __init__(self, path: str):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(mmap.PAGESIZE)

    def read(self) -> tuple[int, int, int]:
        """Calls that allocate on the heap, bytes that they asked for, and bytes mapped beside it, since the node began."""
        with open(self.path, "rb") as file:
            return struct.unpack("=QQQ", file.read(24))


def build(folder: str) -> str:
    """Compiles the counting malloc and mmap."""
    library = f"{folder}/counting.so"
    compiler = shutil.which("clang") or shutil.which("cc")
    if not compiler:
        raise Trouble("there is no C compiler: the toolchain's clang is not in the PATH")
    source = os.path.join(os.path.dirname(__file__), "counting.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def measure(hosts: list[Host], size: int) -> list[goals.Goal]:
    origin, continuing = hosts[0], hosts[1]
    library = build(origin.home)
    counters = []
    for host in hosts[:2]:
        host.stop_node()
        counters.append(Counter(f"{host.home}/allocations"))
        host.start_node(LD_PRELOAD=library, ALLOCATION_COUNTS=counters[-1].path)
    # The same way three times: the first warms everything, and of the others one is larger, so that what the chunks
    # cost is the difference, and what a transfer costs falls out.
    small, large = size // 8, size
    seen = [transfer(origin, continuing, count, counters) for count in (small, small, large)]
    for host, counter in zip(hosts, counters):
        # Of nothing that is counted every difference is small.
        if not all(counter.read()):
            raise Trouble(f"what the node of host {host.number} allocates is not counted: LD_PRELOAD has no effect there")
    for host in hosts[:2]:
        host.stop_node()
        host.start_node()
    chunks = (large - small) / CHUNK
    rows, each = [], []
    for index, who in enumerate(("origin's node", "continuing node")):
        calls, asked, mapped = (
            (large - small) / chunks for small, large in zip(seen[1][index], seen[2][index])
        )
        each.append((calls, asked, mapped))
        rows.append([who, f"{calls:.1f}", f"{asked:.0f} B", f"{mapped:.0f} B", str(seen[1][index][0])])
    table(
        f"Allocations for a chunk of 1 MiB: the difference of {large >> 20} and {small >> 20} MiB, shared by its chunks",
        ["", "calls on the heap", "bytes asked for", "mapped beside it", f"calls of {small >> 20} MiB in all"],
        rows,
    )
    calls, asked, mapped = (max(values) for values in zip(*each))
    work = "heap allocations for a chunk, libraries included"
    return [
        goals.limit(work, f"none for each TLS record: less than {BOUND}", f"{calls:.1f}", calls < BOUND),
        goals.limit(
            f"bytes in {work}", f"none for its content: less than {BYTE_BOUND}", f"{asked:.0f}", asked < BYTE_BOUND
        ),
        goals.limit(
            "bytes mapped for a chunk", f"none for its content: less than {MAPPED_BOUND}", f"{mapped:.0f}",
            mapped < MAPPED_BOUND,
        ),
    ]


def transfer(origin: Host, continuing: Host, size: int, counters: list[Counter]) -> list[list[int]]:
    """Copies a file of a size; what each node allocated meanwhile."""
    source = f"{origin.home}/counted.bin"
    race.make(source, size)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    folder = f"{continuing.home}/received"
    os.makedirs(folder)
    before = [counter.read() for counter in counters]
    continuing.baton("accept", event["id"], "--to", folder)
    after = [counter.read() for counter in counters]
    end(offer)
    shutil.rmtree(folder)
    os.unlink(source)
    return [[last - first for first, last in zip(early, late)] for early, late in zip(before, after)]
