# SPDX-License-Identifier: Apache-2.0

"""The fault campaign between lab hosts that Scripts/campaign has made."""

import argparse
import collections
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
sys.path.append(os.path.join(os.path.dirname(here), "measure"))

import delta  # noqa: E402
import faults  # noqa: E402
from hosts import Host, Trouble  # noqa: E402
from transfer import Lost, Transfer  # noqa: E402


def size(count: int) -> str:
    return f"{count / (1 << 20):.1f} MiB"


def state(transfer: Transfer) -> str:
    """How far the fault came, for people."""
    if transfer.was_interrupted:
        return "interrupted"
    return "struck" if transfer.was_struck else "too late"


def revive(host: Host) -> str | None:
    """Makes sure that the next transfer finds a whole host; how its node ended, where nobody had killed it."""
    code = host.node.poll()
    if code is None:
        return None
    host.node = None
    host.start_node()
    return f"the node on host {host.number} ended by itself ({code}): see {host.home}/node.log"


def main() -> int:
    parser = argparse.ArgumentParser(prog="campaign")
    parser.add_argument("--help-faults", action="store_true")
    parser.add_argument("--lab")
    parser.add_argument("--name")
    parser.add_argument("--folder")
    parser.add_argument("--baton")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--fault")
    parser.add_argument("--delta", action="store_true")
    given = parser.parse_args()
    named = {fault.__name__.replace("_", "-"): fault for fault in faults.ALL}
    if given.help_faults:
        for name, fault in named.items():
            print(f"  {name:16} {fault.__doc__}")
        return 0
    if given.fault and given.fault not in named:
        print(f"campaign: there is no fault '{given.fault}'; there are {', '.join(named)}", file=sys.stderr)
        return 2

    hosts = [Host([given.lab, "--name", given.name], given.folder, number, given.baton) for number in (1, 2)]
    survived, struck, interrupted, lost = collections.Counter(), collections.Counter(), collections.Counter(), []
    sent = twice = whole = resumed = interruptions = parts = crashes = 0
    try:
        key = hosts[0].baton("account", "create", "--name", "host1")
        hosts[1].baton("account", "join", "--no-wait", "--name", "host2", input=key)
        for host in hosts:
            host.start_node()
        if given.delta and (problem := delta.check(*hosts, given.seed)):
            print(f"campaign: {problem}", file=sys.stderr)
            return 1
        for number in range(given.first, given.first + given.count):
            transfer = Transfer(number, given.seed, *hosts, fault=named.get(given.fault))
            name = transfer.fault.__name__.replace("_", "-")
            try:
                transfer.run()
                survived[name] += 1
                outcome = "ok"
            except (Lost, Trouble) as problem:
                lost.append(number)
                outcome = f"LOST: {problem}"
                # What is wrong with them must not take the next transfers along.
                again = [host for host in hosts if host.node.poll() is None]
                for host in again:
                    host.stop_node()
                    host.start_node()
            for crash in filter(None, [revive(host) for host in hosts]):
                crashes += 1
                if number not in lost:
                    lost.append(number)
                    survived[name] -= 1
                outcome = f"LOST: {crash}"
            print(
                f"  {number:4} {name:16} {size(transfer.size):>10} {state(transfer):12}"
                f"resumed {size(transfer.resumed):>10}  twice {size(transfer.sent_twice):>9}  {' '.join(transfer.codes) or '-'}  {outcome}"
                f"  ({', '.join(transfer.said)})",
                flush=True,
            )
            struck[name] += transfer.was_struck
            interrupted[name] += transfer.was_interrupted
            sent += transfer.sent
            twice += transfer.sent_twice
            whole += transfer.size
            resumed += transfer.resumed
            interruptions += transfer.interruptions
            parts += transfer.kept_parts
            transfer.clean()
    except Trouble as trouble:
        print(f"campaign: {trouble}", file=sys.stderr)
        return 1
    finally:
        for host in hosts:
            host.stop_node()

    strikes, stops = sum(struck.values()), sum(interrupted.values())
    least_strikes, least_stops = 2 * given.count // 3, given.count // 3
    print(
        f"\nseed {given.seed}: {sum(survived.values())} of {given.count} transfers whole; {strikes} were struck on their way "
        f"(at least {least_strikes} have to be), and {stops} of them interrupted (at least {least_stops})")
    for name, number in sorted(survived.items()):
        print(f"  {name:16} survived {number} times, struck {struck[name]}, interrupted {interrupted[name]}")
    print(f"  {interruptions} interruptions went on by themselves; {parts} attempts ended with a part to go on with")
    print(f"  documents {size(whole)}; sent in all {size(sent)}; not sent again {size(resumed)}; sent twice at most {size(twice)}")
    print(f"  nodes that ended by themselves: {crashes}")
    if not lost:
        print("  lost: nothing")
        says_little = strikes < least_strikes or stops < least_stops
        if says_little:
            print("campaign: too few transfers were struck or interrupted: it says too little", file=sys.stderr)
        return int(says_little)
    print(f"  LOST: {len(lost)} transfers: {' '.join(str(number) for number in lost)}")
    print(f"  again: Scripts/campaign --seed {given.seed} --first {lost[0]} --count 1")
    return 1


if __name__ == "__main__":
    sys.exit(main())
