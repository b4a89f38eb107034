# SPDX-License-Identifier: Apache-2.0

"""The multicast DNS that one host hears and sends while nothing happens, and each host offers one page."""

import json
import os
import time

import goals
from hosts import Host, end, run_nodes_on, wait_until
from statistic import table

COUNTS = [20, 12, 4]
# After that the traffic of new names is over. An open query is repeated 63 and 127 s after it began, which is in the
# time that is measured, and not again before 255 s.
SETTLING = 30
SECONDS = 100
# Of 12 hosts.
MOST = 2000.0


def measure(hosts: list[Host]) -> list[goals.Goal]:
    measured = {}
    for count in COUNTS:
        print(f"  {count} hosts: {SETTLING + SECONDS} s", flush=True)
        # New nodes, so that every name is as old in each measurement.
        run_nodes_on(hosts, 0)
        run_nodes_on(hosts, count)
        offers = [
            host.offer("--url", f"https://example.org/{host.number}", "--title", f"Page {host.number}")
            for host in hosts[:count]
        ]
        watcher = hosts[0]
        wait_until(lambda: len(watcher.objects("activities")) >= count - 1, 60, "not every page is seen", 1)
        time.sleep(SETTLING)
        capture = os.path.join(os.path.dirname(__file__), "capture.py")
        measured[count] = json.loads(watcher.run("python3", capture, "eth0", str(SECONDS)))
        # All at once, because each takes its time to end.
        for process, _ in offers:
            process.terminate()
        for process, _ in offers:
            end(process)

    def rate(found: dict, name: str) -> str:
        return f"{found.get(name, 0) / SECONDS / 1000:.2f}"

    counts = sorted(measured)
    header = ["kB/s", *(f"{count} hosts" for count in counts)]
    kinds = ["questions", "answers", "probes"]
    rows = [[kind, *(rate(measured[count]["kinds"], kind) for count in counts)] for kind in kinds]
    totals = {count: sum(measured[count]["kinds"].values()) / SECONDS for count in counts}
    rows.append(["all", *(f"{totals[count] / 1000:.2f}" for count in counts)])
    rows.append(["all, for each host", *(f"{totals[count] / count / 1000:.3f}" for count in counts)])
    rows.append(["packets a second", *(f"{measured[count]['packets'] / SECONDS:.1f}" for count in counts)])
    table("Multicast DNS in Ethernet frames, at one host", header, rows)
    types = sorted({name for found in measured.values() for name in found["types"]})
    table("The same by type, without headers", header, [
        [name, *(rate(measured[count]["types"], name) for count in counts)] for name in types
    ])
    return [
        goals.limit(
            "multicast DNS, 12 hosts", f"at most {MOST / 1000:.0f} kB/s", f"{totals[12] / 1000:.2f} kB/s",
            totals[12] <= MOST,
        )
    ]
