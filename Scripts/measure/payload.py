# SPDX-License-Identifier: Apache-2.0

"""From accept to payload: cold, warm, and while a document is being transferred."""

import json
import os
import subprocess
import tempfile
import threading

import goals
from competitors import Nginx
from hosts import Host, Trouble, end, ended_after, now
from race import make
from statistic import SPREAD, mebibytes, spread, table


class Samples:
    """How long accepting took: until the payload was there, and the whole command."""

    def __init__(self):
        self.inner: list[float] = []
        self.whole: list[float] = []

    def take(self, host: Host, activity: str) -> None:
        """Accepts an activity once."""
        inner, whole = accept(host, activity)
        self.inner.append(inner)
        self.whole.append(whole)

    def rows(self, name: str) -> list[list[str]]:
        return [
            [f"{name}: from *accept* to the payload", *spread(self.inner)],
            [f"{name}: the whole command `baton accept`", *spread(self.whole)],
        ]


def accept(host: Host, activity: str) -> tuple[float, float]:
    """Accepts an activity; seconds from *accept* to the payload, as the command says, and of the whole command."""
    # Into a file: whoever reads along would take the processor from the nodes meanwhile.
    with tempfile.TemporaryFile() as said:
        whole = took(host, host.baton_path, "accept", activity, "--print", "--json", stdout=said)
        said.seek(0)
        events = {event["event"]: event for event in map(json.loads, said)}
    return events["payload"]["elapsed"], whole


def took(host: Host, *command: str, **options) -> float:
    """Seconds that a program takes, 30 at the most."""
    began = now()
    done = subprocess.run(host.command(*command), stderr=subprocess.PIPE, timeout=30, **options)
    ended = now()
    if done.returncode:
        raise Trouble(f"{' '.join(command)} failed: {done.stderr.decode().strip()[-300:]}")
    return ended - began


def measure(hosts: list[Host], size: int, samples: int, cold_samples: int) -> list[goals.Goal]:
    origin, continuing = hosts[0], hosts[1]
    info = json.dumps({"line": 1, "text": "x" * 2048})
    offer, event = origin.offer("--type", "org.example.editing", "--title", "Draft", "--user-info", info)
    activity = event["id"]
    continuing.sees(activity)
    nginx = Nginx(origin)
    with open(f"{origin.home}/small", "w") as file:
        file.write(info)

    cold, warm, during = Samples(), Samples(), Samples()
    curl, bare = [], []
    origin.forget_peak_memory()
    memory = [0, 0]
    # In turns, so that whatever else the machine does meets all of them.
    for turn in range(cold_samples):
        # A node that has just started has no connection to anyone; it sees the activity by its advertisement alone.
        continuing.stop_node()
        continuing.start_node()
        watch_until_seen(continuing, activity)
        cold.take(continuing, activity)
        while len(warm.inner) * cold_samples < (turn + 1) * samples:
            warm.take(continuing, activity)
            curl.append(took(continuing, *nginx.fetch("small", "/dev/null")))
            bare.append(took(continuing, "true"))
        memory[1] = max(memory[1], continuing.peak_memory())
    memory[0] = origin.peak_memory()
    nginx.stop()
    while_fetching = during_transfer(origin, continuing, activity, size, samples, during)
    end(offer)
    table(
        "Accept to payload (2 KiB of user info)",
        ["", *SPREAD],
        [
            *cold.rows("cold"),
            *warm.rows("warm"),
            *during.rows("during a transfer"),
            ["for comparison: curl of a small file, cold, whole command", *spread(curl)],
            ["in each whole command: starting a program on a lab host", *spread(bare)],
        ],
    )
    table(
        "Memory, the most that was resident meanwhile",
        ["", "origin's node", "continuing node"],
        [
            ["cold and warm", *map(mebibytes, memory)],
            ["during a transfer", *map(mebibytes, while_fetching)],
        ],
    )
    return [
        goals.soon("accept to payload, warm", warm.inner, 0.002),
        goals.soon("accept to payload, cold", cold.inner, 0.015),
        goals.small("accepting", memory),
        goals.small("accepting during a transfer", while_fetching),
    ]


def watch_until_seen(host: Host, activity: str) -> None:
    """Waits for an activity by its advertisement: listing may connect, which would not be cold any more."""
    with host.spawn(
        host.baton_path, "activities", "--watch", "--json", stdout=subprocess.PIPE
    ) as watch, ended_after(30, watch):
        seen = any(json.loads(line).get("id") == activity for line in watch.stdout)
        end(watch)
    if not seen:
        raise Trouble(f"host {host.number} does not see the activity within 30 s")


def during_transfer(
    origin: Host, continuing: Host, activity: str, size: int, count: int, samples: Samples
) -> list[int]:
    """Accepts again and again while a document crosses the same connection, as often as it takes; gives the memory."""
    source = f"{origin.home}/meanwhile.bin"
    make(source, size)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in (origin, continuing):
        host.forget_peak_memory()
    while len(samples.inner) < count:
        folder = f"{continuing.home}/meanwhile"
        os.makedirs(folder)
        transfer = continuing.spawn(
            continuing.baton_path, "accept", event["id"], "--to", folder, "--json", stdout=subprocess.PIPE
        )
        running = threading.Event()

        def follow():
            for line in transfer.stdout:
                if json.loads(line).get("event") == "progress":
                    running.set()

        threading.Thread(target=follow, daemon=True).start()
        if not running.wait(20):
            end(transfer)
            raise Trouble("the transfer does not begin")
        with ended_after(60 + size / 20e6, transfer):
            while transfer.poll() is None and len(samples.inner) < count:
                inner, whole = accept(continuing, activity)
                if transfer.poll() is None:
                    samples.inner.append(inner)
                    samples.whole.append(whole)
            failed = transfer.wait()
        if failed:
            raise Trouble(f"the transfer failed ({failed})")
        subprocess.run(["rm", "-rf", folder], check=True)
    memory = [host.peak_memory() for host in (origin, continuing)]
    end(offer)
    os.unlink(source)
    return memory
