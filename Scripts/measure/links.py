# SPDX-License-Identifier: Apache-2.0

"""One file over a link that is the limit: 1 Gbit/s, and 100 Mbit/s with 50 ms of delay each way."""

import goals
import race
import single
from hosts import Host
from router import Router
from statistic import mebibytes, median, table

#: What a full TCP segment carries, by the bytes that the link counts: 1,500 of IP, of which 40 and 12 are headers and
#: the time stamps' option; a link of Ethernet counts 14 more.
PAYLOAD_OF_IP = 1448 / 1500
PAYLOAD_OF_ETHERNET = 1448 / 1514


def measure(hosts: list[Host], size: int, rounds: int) -> list[goals.Goal]:
    origin, continuing = hosts[0], hosts[1]
    for host in hosts[:2]:
        host.lab_command("rate", "1000")
    try:
        reached = copy(hosts, size, rounds, 0.95, "a link held to 1 Gbit/s", 1e9 * PAYLOAD_OF_ETHERNET / 8)
    finally:
        for host in hosts[:2]:
            host.lab_command("rate", "off")
    with Router(origin, continuing, delay=0.05, rate=100e6):
        # A connection that was made before would go on beside the router.
        for host in hosts[:2]:
            host.stop_node()
            host.start_node()
        reached += copy(
            hosts, size // 8, rounds, 0.9, "100 Mbit/s with 50 ms of delay each way, through a router",
            1e8 * PAYLOAD_OF_IP / 8,
        )  # fmt: skip
    for host in hosts[:2]:
        host.stop_node()
        host.start_node()
    return reached


def copy(
    hosts: list[Host], size: int, rounds: int, least: float, title: str, payload_rate: float
) -> list[goals.Goal]:
    contenders, memory = single.copy(hosts, size, rounds, slowest=payload_rate / 4)
    table(
        f"One file of {size / race.GIB:.3f} GiB over {title}, medians of {rounds} interleaved rounds;"
        f" the link's payload rate is {payload_rate / 1e6:.1f} MB/s",
        ["", "command ended", "of the payload rate", "CPU per GiB, both ends"],
        [
            [
                contender.name,
                race.rate(size, median(contender.done)),
                f"{size / median(contender.done) / payload_rate:.1%}",
                f"{median(contender.cpu) / (size / race.GIB):.2f} s",
            ]
            for contender in contenders
        ],
    )
    table("Memory meanwhile", ["", "origin's node", "continuing node"], [["baton", *map(mebibytes, memory)]])
    share = size / median(contenders[0].done) / payload_rate
    return [goals.filling(title, share, least), goals.small(title, memory)]
