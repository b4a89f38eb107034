# SPDX-License-Identifier: Apache-2.0

"""From a change on one host to its sight on another, through the real DNS-SD of Avahi."""

import json
import subprocess
import threading
import time

from hosts import Host, Trouble, end, now, wait_until
from statistic import SPREAD, spread, table

# A node may announce a change each 6 s once its burst of 4 is spent. One activity made current and withdrawn again is
# two changes, so that a pace of 13 s never meets that limit and each change is announced at once.
PACE = 13.0


class Watch:
    """`baton activities --watch` on a host: when each activity came and went, on the clock of this process."""

    def __init__(self, host: Host):
        self.came: dict[str, float] = {}
        self.gone: dict[str, float] = {}
        self.process = host.spawn(host.baton_path, "activities", "--watch", "--json", stdout=subprocess.PIPE)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            at = now()
            event = json.loads(line)
            activity = event.get("id")
            if not activity:
                continue
            if event.get("event") == "removed":
                self.gone.setdefault(activity, at)
            else:
                self.came.setdefault(activity, at)

    def stop(self) -> None:
        end(self.process)


def measure(hosts: list[Host], changes: int) -> None:
    """The first host watches, the others take turns, so that many changes are made while each keeps its own pace."""
    watcher, origins = hosts[0], hosts[1:]
    watch = Watch(watcher)
    wait_until(
        lambda: len(watcher.objects("devices")) >= len(origins), 60, "not every device is known to the one that watches"
    )
    time.sleep(8)  # what the nodes announced of themselves has used credit
    typed, offered, withdrawn, lost = [], [], [], []
    lock = threading.Lock()

    def change(origin: Host, number: int) -> None:
        began = now()
        process, event = origin.offer("--type", "org.example.benchmark", "--title", f"Change {number}")
        made = now()
        activity = event["id"]
        try:
            wait_until(lambda: activity in watch.came, 20, f"change {number} was never seen", 0.001)
            came = watch.came[activity]
        except Trouble:
            came = None
        time.sleep(1.0)  # as a person would: the withdrawal is not debounced together with the offer
        ended = now()
        end(process)
        try:
            wait_until(lambda: came is None or activity in watch.gone, 20, f"{number} was never seen to go", 0.001)
            gone = watch.gone.get(activity)
        except Trouble:
            gone = None
        with lock:
            if came is None or gone is None:
                lost.append(number)
                return
            typed.append(came - began)
            offered.append(came - made)
            withdrawn.append(gone - ended)

    print(
        f"  {changes} activities made current and withdrawn, by {len(origins)} hosts in turn:"
        f" {changes * PACE / len(origins) / 60:.1f} minutes",
        flush=True,
    )
    threads = []
    start = now()
    for number in range(changes):
        time.sleep(max(0.0, start + number * PACE / len(origins) - now()))
        thread = threading.Thread(target=change, args=(origins[number % len(origins)], number))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()

    spent = after_a_burst(watch, origins)
    watch.stop()
    rows = [
        ["made current: from the node's word to its sight elsewhere", *spread(offered)],
        ["the same, from the start of the command `baton offer`", *spread(typed)],
        ["withdrawn: from the signal to `baton offer` to gone elsewhere", *spread(withdrawn)],
    ]
    if spent:
        rows.append(["the same, when a burst has spent all other credit", *spread(spent)])
    table("Announce to seen", ["", *SPREAD], rows)
    if lost:
        print(f"  NEVER SEEN within 20 s: {len(lost)} of {changes} ({lost})\n", flush=True)


def after_a_burst(watch: Watch, origins: list[Host]) -> list[float]:
    """A withdrawal goes out at any time: one credit is kept for it."""
    time.sleep(26)  # so that each burst begins with all credit
    times = []
    for origin in origins:
        held = [origin.offer("--type", "org.example.benchmark", "--title", "A first one")]
        wait_until(lambda: held[0][1]["id"] in watch.came, 20, "a first activity was never seen")
        for number in range(6):
            time.sleep(0.4)  # longer than the debounce
            held.append(origin.offer("--type", "org.example.benchmark", "--title", f"Of a burst {number}"))
        newest = next((offer for offer in reversed(held) if offer[1]["id"] in watch.came), held[0])
        # All of them go at once: what was seen last must be gone although nothing but the kept credit is left.
        began = now()
        for process, _ in held:
            process.terminate()
        try:
            wait_until(lambda: newest[1]["id"] in watch.gone, 20, "gone", 0.001)
            times.append(watch.gone[newest[1]["id"]] - began)
        except Trouble:
            print(f"  host {origin.number}: a withdrawal after a burst was not seen within 20 s", flush=True)
        for process, _ in held:
            end(process)
    return times
