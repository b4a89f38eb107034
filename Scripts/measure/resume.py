# SPDX-License-Identifier: Apache-2.0

"""How soon a document goes on that was cut: from the moment at which it can, to its first new bytes."""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import threading
import time

import folders
import goals
import race
from hosts import Host, Trouble, end, now, wait_until
from statistic import milliseconds, table

MOST = 1.0
#: Seconds that each document takes at the least, and megabits a second that the link has at the most, so that it is
#: still on its way when it is cut.
SECONDS, LINK = 4, 1000
#: How much of a document has come before it is cut.
SHARE = 0.6
#: How long the cable is out: shorter than what makes either side give the connection up, longer than TCP's first tries.
WITHOUT_CABLE = 3
#: How long a node stands still: longer than its connections live.
STANDING = 35
#: What the origin has in turns with its own.
OTHER_ADDRESS = "10.77.0.101"


class Accept:
    """A running `baton accept`, and when it said what."""

    def __init__(self, host: Host, activity: str, folder: str):
        self.began = now()
        self.process = host.spawn(
            host.baton_path, "accept", activity, "--to", folder, "--json", stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.said: list[tuple[float, dict]] = []
        self.follower = threading.Thread(target=self.follow, daemon=True)
        self.follower.start()

    def follow(self) -> None:
        for line in self.process.stdout:
            self.said.append((now(), json.loads(line)))

    def progress(self, begin: float, beyond: int) -> tuple[float, int] | None:
        """When, after a moment, more had come than so many bytes for the first time, and how many."""
        for moment, event in list(self.said):
            if moment > begin and event["event"] == "progress" and event["bytes"] > max(beyond, event["resumed"]):
                return moment, event["bytes"]
        return None

    def reached(self, until: float = math.inf) -> int:
        """The most that it has said to have come, up to a moment."""
        said = [event for moment, event in list(self.said) if moment <= until and event["event"] == "progress"]
        return max((event["bytes"] for event in said), default=0)

    def stop(self) -> None:
        end(self.process)
        self.follower.join()
        self.process.stdout.close()


class Watch:
    """A running `baton activities --watch`, and when it listed what."""

    def __init__(self, host: Host):
        self.process = host.spawn(
            host.baton_path, "activities", "--watch", "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.moments: dict[str, float] = {}
        self.follower = threading.Thread(target=self.follow, daemon=True)
        self.follower.start()

    def follow(self) -> None:
        for line in self.process.stdout:
            self.moments.setdefault(json.loads(line).get("id"), now())

    def listed(self, activity: str) -> float | None:
        return self.moments.get(activity)

    def close(self) -> None:
        end(self.process)
        self.follower.join()
        self.process.stdout.close()


class Document:
    """What is cut again and again: its offer on one host, and its way to the other."""

    def __init__(self, origin: Host, continuing: Host, path: str, size: int):
        self.origin = origin
        self.continuing = continuing
        self.path = path
        self.size = size
        self.folder = f"{continuing.home}/resumed"
        self.offering, event = self.origin.offer(self.path, stderr=subprocess.DEVNULL)
        self.activity = event["id"]
        threading.Thread(target=self.follow_offer, daemon=True).start()

    def follow_offer(self) -> None:
        """Where the node is another one, the command offers the document again by itself."""
        for line in self.offering.stdout:
            event = json.loads(line)
            if event["event"] == "offered":
                self.activity = event["id"]

    def accept(self) -> Accept:
        return Accept(self.continuing, self.activity, self.folder)

    def cut(self, fault) -> float:
        """Seconds from when it can go on, after a fault, to its first new bytes."""
        os.makedirs(self.folder)
        self.continuing.sees(self.activity)
        first = self.accept()
        after = first
        try:
            wait_until(lambda: first.reached() >= SHARE * self.size, 60 + self.size / 5e6, "it does not get so far")
            able, after = fault(self, first)
            beyond = first.reached(until=able) if after is first else 0
            new = wait_until(lambda: after.progress(able, beyond), 60,
                             f"after {fault.__doc__} it does not go on within a minute")  # fmt: skip
            return new[0] - able
        finally:
            for accept in {first, after}:
                accept.stop()
            # Also where the node has it to itself.
            wait_until(lambda: self.removed(), 30, "the part is still being written", 0.2)

    def removed(self) -> bool:
        shutil.rmtree(self.folder, ignore_errors=True)
        time.sleep(0.3)
        return not os.path.exists(self.folder)

    def end(self) -> None:
        end(self.offering)


def command(document: Document, accept: Accept) -> tuple[float, Accept]:
    """kill -9 of the command"""
    accept.process.kill()
    again = document.accept()
    return again.began, again


def continuing(document: Document, _accept: Accept) -> tuple[float, Accept]:
    """kill -9 of the continuing node"""
    document.continuing.node.kill()
    document.continuing.node.wait()
    document.continuing.start_node()
    document.continuing.sees(document.activity)
    again = document.accept()
    return again.began, again


def origin(document: Document, accept: Accept) -> tuple[float, Accept]:
    """kill -9 of the origin's node"""
    before = document.activity
    with contextlib.closing(Watch(document.continuing)) as watch:
        wait_until(lambda: watch.listed(before), 30, "the other host does not list it")
        document.origin.node.kill()
        document.origin.node.wait()
        document.origin.start_node()
        wait_until(lambda: document.activity != before, 30, "the document was not offered again by itself")
        # From when the other host knows: before that, Avahi asks whether somebody else has the new name (RFC 6762,
        # 8.1).
        able = wait_until(lambda: watch.listed(document.activity), 30, "the other host does not list it again")
    return able, accept


def cable(document: Document, accept: Accept) -> tuple[float, Accept]:
    """seconds without a cable"""
    document.origin.lab_command("link", "down")
    time.sleep(WITHOUT_CABLE)
    able = now()
    document.origin.lab_command("link", "up")
    return able, accept


def suspended(document: Document, accept: Accept) -> tuple[float, Accept]:
    """seconds in which the origin's node stood still"""
    document.origin.node.send_signal(signal.SIGSTOP)
    time.sleep(STANDING)
    able = now()
    document.origin.node.send_signal(signal.SIGCONT)
    return able, accept


def address(document: Document, accept: Accept) -> tuple[float, Accept]:
    """another address of the origin"""
    host = document.origin
    host.change_address(OTHER_ADDRESS if host.address != OTHER_ADDRESS else f"10.77.0.{host.number}")

    def is_known() -> bool:
        devices = document.continuing.objects("devices")
        return any(address.startswith(f"{host.address}:") for device in devices for address in device["addresses"])

    # From when the other host knows: before that, Avahi asks whether somebody else has the new name, as above.
    return wait_until(lambda: is_known() and now(), 30, "the other host does not see the new address"), accept


def measure(hosts: list[Host], size: int, rounds: int) -> list[goals.Goal]:
    near, far = hosts[0], hosts[1]
    faults = [command, continuing, origin, cable, suspended, address]
    rows, slowest = [], {fault: 0.0 for fault in faults}
    try:
        for title, total, make in [
            ("128 MiB", 128 << 20, race.make),
            (f"{size / race.GIB:.2f} GiB", size, race.make),
            ("10,000 files of 4 KiB", 10_000 * 4096, folders.make_small),
        ]:
            near.lab_command("rate", str(min(LINK, total * 8 // SECONDS // 1_000_000)))
            path = f"{near.home}/resume"
            if make is folders.make_small:
                os.makedirs(path)
            make(path, total)
            document = Document(near, far, path, total)
            try:
                for fault in faults:
                    took = [document.cut(fault) for _ in range(rounds)]
                    print(f"  {title}, {fault.__doc__}: {', '.join(map(milliseconds, took))}", flush=True)
                    slowest[fault] = max(slowest[fault], *took)
                    rows.append([title, fault.__doc__, *(milliseconds(seconds) for seconds in took)])
            finally:
                document.end()
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
    except Trouble:
        table_of(rows, rounds)
        raise
    finally:
        near.lab_command("rate", "off")
        if near.address == OTHER_ADDRESS:
            near.change_address(f"10.77.0.{near.number}")
    table_of(rows, rounds)
    return [
        goals.Goal(
            f"going on after {fault.__doc__}", f"at most {milliseconds(MOST)}", milliseconds(slowest[fault]),
            slowest[fault] <= MOST,
        )  # fmt: skip
        for fault in faults
    ]


def table_of(rows: list[list[str]], rounds: int) -> None:
    table(
        f"Going on after {SHARE:.0%} have come: from when it can to the first new bytes"
        " (the command run again, where it or its node was killed; the document listed again; the cable plugged in; the node running again; the new address known)",
        ["", "after", *(f"round {number}" for number in range(1, rounds + 1))],
        rows,
    )
