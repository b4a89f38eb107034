# SPDX-License-Identifier: Apache-2.0

"""What a node costs while nothing happens: how often it wakes, and the memory that it holds."""

import os
import time

import goals
from hosts import Host, run_nodes_on, wait_until
from statistic import mebibytes, table

DEVICES = 10
# After that the work of starting and of first announcements is over.
SETTLING = 45
# Every device renews its announcement once in this time.
SECONDS = 300
MOST_WAKE_UPS = 1.0
MOST_MEMORY = 25 << 20


def switches(pid: int) -> dict[str, int]:
    """Context switches of each thread so far, voluntary or not. A thread that wakes makes at least one."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/status") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        name = lines[0].split(None, 1)[1]
        found[f"{name} {thread}"] = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    return found


def memory(pid: int) -> dict[str, int]:
    """Resident memory in bytes: all of it, what is in no file, and the process's share of all."""
    found = {}
    for path, names in [("status", ["VmRSS", "RssAnon"]), ("smaps_rollup", ["Pss"])]:
        with open(f"/proc/{pid}/{path}") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in names:
                    found[name] = int(value.split()[0]) * 1024
    return found


def measure(hosts: list[Host]) -> list[goals.Goal]:
    run_nodes_on(hosts, DEVICES + 1)
    host = hosts[0]
    wait_until(lambda: len(host.objects("devices")) >= DEVICES, 60, "not every device is known", 1)
    print(f"  one node that knows {DEVICES} devices: {SETTLING + SECONDS} s", flush=True)
    time.sleep(SETTLING)
    before = switches(host.node.pid)
    time.sleep(SECONDS)
    after = switches(host.node.pid)
    held = memory(host.node.pid)
    threads = {name: count - before.get(name, 0) for name, count in after.items()}
    total = sum(threads.values()) / SECONDS
    busiest = sorted(threads.items(), key=lambda item: -item[1])
    table(
        "An idle node", ["", ""],
        [
            ["wake-ups a second", f"{total:.2f}"],
            *([f"  of thread {name.rsplit(' ', 1)[0]}", f"{count / SECONDS:.2f}"] for name, count in busiest if count),
            ["threads", str(len(threads))],
            ["memory, all that is resident (VmRSS)", mebibytes(held["VmRSS"])],
            ["  of it in no file (RssAnon)", mebibytes(held["RssAnon"])],
            ["  with what is shared divided among those who share it (Pss)", mebibytes(held["Pss"])],
        ],
    )
    return [
        goals.limit(
            f"wake-ups of an idle node that knows {DEVICES} devices", f"under {MOST_WAKE_UPS:.0f} a second",
            f"{total:.2f}", total < MOST_WAKE_UPS,
        ),
        goals.limit(
            "memory of an idle node (VmRSS)", f"under {mebibytes(MOST_MEMORY)}", mebibytes(held["VmRSS"]),
            held["VmRSS"] < MOST_MEMORY,
        ),
    ]
