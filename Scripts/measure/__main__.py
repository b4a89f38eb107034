# SPDX-License-Identifier: Apache-2.0

"""Measures Baton between lab hosts that Scripts/benchmark has made."""

import argparse
import os
import platform
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))

import allocations  # noqa: E402
import chatter  # noqa: E402
import discovery  # noqa: E402
import folders  # noqa: E402
import gate  # noqa: E402
import goals  # noqa: E402
import idle  # noqa: E402
import links  # noqa: E402
import payload  # noqa: E402
import resume  # noqa: E402
import sparse  # noqa: E402
import throughput  # noqa: E402
from hosts import Host, Trouble, run_nodes_on  # noqa: E402


def first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        # What is compared with nobody is measured without.
        return f"no {command[0]}"
    return (done.stdout + done.stderr).strip().splitlines()[0]


def describe(folder: str) -> None:
    with open("/proc/cpuinfo") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    print(f"  {len(os.sched_getaffinity(0))} cores, {models[0] if models else platform.machine()}, {platform.release()}")
    print(f"  documents in {folder}, {first_line('stat', '-f', '-c', '%T', folder)}")
    print(f"  {first_line('nginx', '-v')}; {first_line('curl', '--version')[:40]}; {first_line('ssh', '-V')}")
    print(f"  load before: {os.getloadavg()[0]:.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="measure")
    parser.add_argument("--lab", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--baton", required=True)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--changes", type=int, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--congestion-control", required=True)
    parser.add_argument("measurements", nargs="+")
    given = parser.parse_args()

    describe(given.folder)
    hosts = [
        Host([given.lab, "--name", given.name], given.folder, number, given.baton)
        for number in range(1, given.hosts + 1)
    ]
    failed = 0
    try:
        own = hosts[0].congestion_control
        if given.congestion_control not in ("own", own):
            for host in hosts:
                host.use_congestion_control(given.congestion_control)
        print(f"  TCP congestion control {hosts[0].congestion_control}; this machine's is {own}", flush=True)
        key = hosts[0].baton("account", "create", "--name", "host1")
        for host in hosts[1:]:
            host.baton("account", "join", "--no-wait", "--name", f"host{host.number}", input=key)
        # More than two only for the measurements that look at many, so that the others are not disturbed.
        run_nodes_on(hosts, min(len(hosts), 6))
    except Trouble as trouble:
        print(f"benchmark: {trouble}", file=sys.stderr)
        return 1
    measure = {
        "throughput": lambda: throughput.measure(hosts, given.size, given.rounds),
        "folders": lambda: folders.measure(hosts, given.size, given.rounds),
        "resume": lambda: resume.measure(hosts, given.size, given.rounds),
        "links": lambda: links.measure(hosts, given.size // 2, given.rounds),
        "sparse": lambda: sparse.measure(hosts, given.size * 32),
        "allocations": lambda: allocations.measure(hosts, given.size),
        "payload": lambda: payload.measure(hosts, given.size, given.samples, max(3, given.samples // 5)),
        "discovery": lambda: discovery.measure(hosts[:6], given.changes) or [],
        "chatter": lambda: chatter.measure(hosts),
        "idle": lambda: idle.measure(hosts),
        "gate": lambda: gate.measure(hosts, given.samples * 100),
    }
    reached: list[goals.Goal] = []
    for measurement in given.measurements:
        print(f"\n{measurement}", flush=True)
        try:
            reached += measure[measurement]()
        except Trouble as trouble:
            print(f"benchmark: {measurement}: {trouble}", file=sys.stderr, flush=True)
            failed = 1
    for host in hosts:
        host.stop_node()
    goals.tell(reached)
    return int(failed or any(goal.is_limit and not goal.is_met for goal in reached))


if __name__ == "__main__":
    sys.exit(main())
