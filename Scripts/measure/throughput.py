"""One large file from page cache to disk: Baton against curl from nginx over TLS 1.3 and scp."""

import race
import single
from hosts import Host
from statistic import table


def measure(hosts: list[Host], size: int, rounds: int) -> None:
    contenders, memory = single.copy(hosts, size, rounds)
    table(
        f"Throughput, page cache to disk, {size / race.GIB:.2f} GiB, medians of {rounds} interleaved rounds"
        " (Baton's command ends after its data is synced, the others' before: the second pair adds a sync to each)",
        race.HEADER,
        race.rows(contenders, size),
    )
    table(
        "Memory, the most that was resident during these transfers",
        ["", "origin's node", "continuing node"],
        [["baton", *memory]],
    )
