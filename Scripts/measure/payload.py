"""From accept to payload: cold, warm, and while a document is being transferred."""

import json
import os
import subprocess
import threading

import goals
from competitors import Nginx
from hosts import Host, Trouble, end, ended_after, now
from race import make
from statistic import SPREAD, mebibytes, spread, table


def accept(host: Host, activity: str) -> tuple[float, float]:
    """Accepts an activity; seconds from *will continue* to the payload, and from the command's start to it."""
    began = now()
    process = host.spawn(
        host.baton_path, "accept", activity, "--print", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    will = payload = None
    with ended_after(30, process):
        for line in process.stdout:
            at = now()
            event = json.loads(line).get("event")
            if event == "willContinue":
                will = at
            elif event == "payload":
                payload = at
    if process.wait() or payload is None or will is None:
        raise Trouble(f"accepting failed: {process.stderr.read().decode().strip()[-300:]}")
    return payload - will, payload - began


def measure(hosts: list[Host], size: int, samples: int, cold_samples: int) -> list[goals.Goal]:
    origin, continuing = hosts[0], hosts[1]
    info = json.dumps({"line": 1, "text": "x" * 2048})
    offer, event = origin.offer("--type", "org.example.editing", "--title", "Draft", "--user-info", info)
    activity = event["id"]
    continuing.sees(activity)

    cold, cold_command = [], []
    for _ in range(cold_samples):
        # A node that has just started has no connection to anyone; it sees the activity by its advertisement alone.
        continuing.stop_node()
        continuing.start_node()
        watch_until_seen(continuing, activity)
        inner, whole = accept(continuing, activity)
        cold.append(inner)
        cold_command.append(whole)
    warm, warm_command = [], []
    for _ in range(samples):
        inner, whole = accept(continuing, activity)
        warm.append(inner)
        warm_command.append(whole)

    nginx = Nginx(origin)
    with open(f"{origin.home}/small", "w") as file:
        file.write(info)
    curl = []
    for _ in range(samples):
        began = now()
        subprocess.run(continuing.command(*nginx.fetch("small", "/dev/null")), check=True)
        curl.append(now() - began)
    nginx.stop()
    bare = []
    for _ in range(samples):
        began = now()
        subprocess.run(continuing.command("true"), check=True)
        bare.append(now() - began)
    during, during_command, memory = during_transfer(origin, continuing, activity, size, samples)
    end(offer)
    table(
        "Accept to payload (2 KiB of user info)",
        ["", *SPREAD],
        [
            ["cold: from *will continue* to the payload", *spread(cold)],
            ["cold: from the start of the command `baton accept`", *spread(cold_command)],
            ["warm: from *will continue* to the payload", *spread(warm)],
            ["warm: from the start of the command", *spread(warm_command)],
            ["during a transfer: from *will continue* to the payload", *spread(during)],
            ["during a transfer: from the start of the command", *spread(during_command)],
            ["for comparison: curl of a small file, cold, whole command", *spread(curl)],
            ["in each whole command: starting a program on a lab host", *spread(bare)],
        ],
    )
    table(
        "Memory, the most that was resident meanwhile",
        ["", "origin's node", "continuing node"],
        [["baton", *map(mebibytes, memory)]],
    )
    return [
        goals.soon("accept to payload, warm", warm, 0.002),
        goals.soon("accept to payload, cold", cold, 0.015),
        goals.small("accepting during a transfer", memory),
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


def during_transfer(origin: Host, continuing: Host, activity: str, size: int, samples: int):
    """Accepts again and again while a document crosses the same connection, as often as it takes."""
    source = f"{origin.home}/meanwhile.bin"
    make(source, size)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in (origin, continuing):
        host.forget_peak_memory()
    inner, whole = [], []
    while len(inner) < samples:
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
            while transfer.poll() is None and len(inner) < samples:
                sample = accept(continuing, activity)
                if transfer.poll() is None:
                    inner.append(sample[0])
                    whole.append(sample[1])
            failed = transfer.wait()
        if failed:
            raise Trouble(f"the transfer failed ({failed})")
        subprocess.run(["rm", "-rf", folder], check=True)
    memory = [host.peak_memory() for host in (origin, continuing)]
    end(offer)
    os.unlink(source)
    return inner, whole, memory
