# SPDX-License-Identifier: Apache-2.0

"""One large file from page cache to disk: Baton against curl from nginx over TLS 1.3 and scp."""

import goals
import race
import single
from hosts import Host
from statistic import mebibytes, median, table


def measure(hosts: list[Host], size: int, rounds: int) -> list[goals.Goal]:
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
        [["baton", *map(mebibytes, memory)]],
    )
    table(
        "The busiest thread of each node, and its share of the time: at 100 % one connection would be the limit",
        ["", "origin's node", "continuing node"],
        [["baton", *(f"{median(list(shares)):.0%}" for shares in zip(*contenders[0].busiest))]],
    )
    baton, curl, scp = contenders
    return [
        goals.faster("one large file", baton, curl, 1.5),
        goals.faster("one large file", baton, scp, 2),
        goals.frugal("one large file", baton, curl),
        goals.small("one large file", memory),
    ]
