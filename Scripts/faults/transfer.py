# SPDX-License-Identifier: Apache-2.0

"""One transfer that is cut, and accepted again until the document is whole."""

import json
import os
import random
import re
import subprocess
import threading
import time

import documents
import faults
from hosts import Host, now, wait_until

# The codes with which a transfer may end before the document is whole. Any other code is a fault of Baton's.
EXPECTED = {
    "connectionLost", "peerUnreachable", "timedOut", "noSuchActivity", "noSuchClaim", "nodeStopping", "noNode",
    "documentChanged", "documentUnreadable", "destinationFull", "claimHeld", "limitExceeded", "cancelled", "refused",
}
ATTEMPTS = 12
#: What has arrived before it could be cut is sent anew over a link so many times slower, one after the other.
SLOWER = (1, 3, 9)
ATTEMPT_SECONDS = 120
#: What one cut may cost: a chunk of each range that is open at the most (`NodeLimits.openRanges`).
CUT_BYTES = 8 * documents.MEGABYTE
#: Documents that are smaller mostly arrive before they can be cut: of these there are few.
LITTLE = 2 * documents.MEGABYTE
#: Of what can be compressed so much may cross plain before the link is known to be slow.
PLAIN_BYTES = 8 * documents.MEGABYTE
PART = re.compile(rb"^\..*\.[a-z2-7]{8}\.baton-part$", re.DOTALL)


class Lost(Exception):
    """What must never happen, in one sentence."""


class Transfer:
    """A document on one host, and its way to the other."""

    def __init__(self, number: int, seed: int, origin: Host, continuing: Host, fault=None):
        self.number = number
        self.chance = random.Random(f"{seed}/{number}")
        self.origin = origin
        self.continuing = continuing
        self.fault = fault or faults.ALL[(number - 1) % len(faults.ALL)]
        self.said: list[str] = []
        self.codes: list[str] = []
        self.interruptions = 0
        self.resumed = 0
        self.kept_parts = 0
        self.sent = 0
        self.sent_twice = 0
        #: How far the document has come, from where it has to be gone on with.
        self.reached = 0
        self.forgotten = 0
        #: The fault came while the document was on its way.
        self.was_struck = False
        self.offering = None
        self.accepting = None
        self.mounted = False

        self.folder = os.path.join(os.fsencode(origin.home), b"document-%d" % number)
        self.destination = os.path.join(os.fsencode(continuing.home), b"destination-%d" % number)
        self.source = os.path.join(self.folder, self.chance.choice(["plain.bin", ".hidden", "two words", "Grüße"]).encode())
        self.target = os.path.join(self.destination, os.path.basename(self.source))
        os.mkdir(self.folder)
        os.mkdir(self.destination)
        while True:
            make = documents.make_unreserved if self.fault is faults.disk_full else documents.make
            make(self.chance, self.source, self.chance.choice([1, 4, 16, 48]) * documents.MEGABYTE)
            self.versions: list[dict[bytes, tuple]] = []
            self.distinct: dict[bytes, int] = {}
            self.note_version()
            if sum(self.distinct.values()) >= LITTLE or self.chance.random() < 0.1:
                break
            documents.remove(self.source)
        self.size = documents.size_of(self.versions[0])
        if self.fault is faults.disk_full:
            room = min(self.size, 512 << 20) * 2 + (16 << 20)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "campaign", self.destination], check=True)
            self.mounted = True

    @property
    def was_interrupted(self) -> bool:
        """Whether the fault stopped it, so that it had to be gone on with: not all do."""
        return self.was_struck and bool(self.interruptions or self.codes)

    def note_version(self) -> None:
        """What the source is now may be what arrives."""
        self.versions.append(documents.version(self.source))
        documents.distinct(self.source, self.distinct)

    # --- the two commands --------------------------------------------------------------------------------------------

    def offer(self) -> None:
        if self.offering:
            faults.end_quietly(self.offering)
        self.offering, event = self.origin.offer(os.fsdecode(self.source))
        self.activity = event["id"]
        threading.Thread(target=self.follow_offer, args=(self.offering,), daemon=True).start()
        self.continuing.sees(self.activity, 60)

    def follow_offer(self, process) -> None:
        """Where the node is another one, the command offers the document again by itself."""
        for line in process.stdout:
            event = json.loads(line)
            if event.get("event") == "offered":
                self.activity = event["id"]

    def node_was_killed(self, host: Host, before: str) -> None:
        """Waits until what that node offered is offered again."""
        if host is self.origin:
            wait_until(lambda: self.activity != before, 30, "the document was not offered again by itself")
            self.continuing.sees(self.activity, 60)

    def accept(self, cut_at: float | None) -> str | None:
        """One `baton accept`; cut when this part of the document has come. None when all is well, else a code."""
        command = (self.continuing.baton_path, "accept", self.activity, "--to", os.fsdecode(self.destination), "--json")
        self.accepting = self.continuing.spawn(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        moment, errors = threading.Event(), []
        follower = threading.Thread(target=self.follow, args=(self.accepting, cut_at, moment, errors))
        follower.start()
        if cut_at is not None:
            # At a random byte: progress is told five times a second, so that the cut comes anywhere until the next
            # time. A transfer that ends before its first report cannot be cut so: some are cut at a moment instead.
            moment.wait(self.chance.random() * 0.3 if self.chance.random() < 0.2 else ATTEMPT_SECONDS / 2)
            self.wait(self.chance.random() * 0.2)
            self.was_struck = self.accepting.poll() is None
            mend = self.fault(self)
            mend()
        deadline = now() + ATTEMPT_SECONDS
        while self.accepting.poll() is None and now() < deadline:
            time.sleep(0.05)
        if self.accepting.poll() is None:
            self.accepting.kill()
            raise Lost(f"baton accept neither ends nor goes on for {ATTEMPT_SECONDS} s")
        follower.join()
        said = self.accepting.stderr.read().decode(errors="replace")
        self.accepting.stderr.close()
        self.accepting.stdout.close()
        if self.accepting.returncode == 0:
            return None
        if self.accepting.returncode == -9:
            return "killed"
        if not errors:
            # Without a node there is no event; the exit code says so.
            code = {68: "peerUnreachable", 69: "noNode", 66: "noSuchActivity"}.get(self.accepting.returncode)
            if code:
                return code
            raise Lost(f"exit code {self.accepting.returncode} without a typed error: {said.strip()[-300:]}")
        return errors[0]

    def follow(self, process, cut_at, moment, errors) -> None:
        is_first = True
        for line in process.stdout:
            event = json.loads(line)
            kind = event.get("event")
            if kind == "progress":
                resumed = event.get("resumed", 0)
                # Where it goes on, all that had come is there; of another version what differs has to come again.
                if (is_first or event["bytes"] <= resumed) and len(self.versions) == 1:
                    self.forgotten = max(self.forgotten, self.reached - resumed)
                is_first = False
                self.reached = event["bytes"]
                self.resumed = max(self.resumed, resumed)
                if cut_at is not None and event["bytes"] >= cut_at * event["total"]:
                    moment.set()
            elif kind == "interrupted":
                self.interruptions += 1
            elif kind == "failed":
                errors.append(event["code"])
        moment.set()

    def wait(self, seconds: float) -> None:
        """Lets a fault last, but not longer than the command."""
        end = now() + seconds
        while now() < end and self.accepting.poll() is None:
            time.sleep(0.02)

    # --- the whole ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        self.offer()
        for slower in SLOWER:
            before = self.origin.sent_bytes()
            self.limit_link(slower)
            code = self.accept(cut_at=self.chance.random() * 0.9)
            if self.was_struck or code is not None or self.size == 0 or slower == SLOWER[-1]:
                break
            self.compare()
            documents.remove(self.target)
            self.reached = 0
            if self.offering.poll() is not None:
                self.offer()
        for _ in range(ATTEMPTS):
            if code is None:
                break
            self.codes.append(code)
            if code == "killed":
                # The node goes on without the command: asked again at once it goes on with what has come.
                if self.is_whole():
                    break
            elif code == "destinationExists" and self.codes[-2:-1] in (["killed"], ["noNode"]) and self.is_whole():
                # It arrived between that look and the question, or just before its node was killed.
                break
            elif code not in EXPECTED:
                raise Lost(f"ended with '{code}', which is none of what such a fault may lead to")
            if self.has_part():
                self.kept_parts += 1
            elif self.reached and not os.path.lexists(self.target):
                raise Lost(f"ended with '{code}', and nothing is left of the {self.reached} bytes that had come")
            if code == "noSuchActivity" or self.offering.poll() is not None:
                self.offer()
            code = self.accept(cut_at=None)
        self.sent = self.origin.sent_bytes() - before
        self.sent_twice = max(0, self.sent - sum(self.distinct.values()))
        # The interface counts more: segments that TCP sent again, frames, records, announcements.
        beside = documents.MEGABYTE + self.sent // 20
        beside += min(max(0, self.size - sum(self.distinct.values())), PLAIN_BYTES * len(self.versions))
        # A connection that lived through its fault has sent again what was on its way then, which is no more than is
        # open.
        cuts = max(self.interruptions + len(self.codes), int(self.was_struck))
        if self.sent_twice > cuts * CUT_BYTES + beside:
            raise Lost(f"{self.sent_twice} bytes were sent twice, which is more than its cuts may cost")
        if self.forgotten:
            raise Lost(f"{self.forgotten} bytes that had come were not gone on with")
        self.compare()

    def limit_link(self, slower: int) -> None:
        # Long enough to be cut, and not much longer. Holes, and what is there twice, hardly cross.
        seconds = self.chance.uniform(1, 6)
        rate = str(min(400, max(2, round(sum(self.distinct.values()) * 8 / seconds / 1e6 / slower))))
        if slower == 1 and self.chance.random() < 0.1:
            rate = "off"
        self.said.append(f"link {rate}")
        faults.lab(self.continuing, "rate", rate)

    def has_part(self) -> bool:
        return any(PART.match(entry) for entry in os.listdir(self.destination))

    def is_whole(self) -> bool:
        return os.path.lexists(self.target) and documents.version(self.target) in self.versions

    def compare(self) -> None:
        if not os.path.lexists(self.target):
            raise Lost(f"after {ATTEMPTS} attempts nothing has arrived; the attempts ended with {self.codes}")
        arrived = documents.version(self.target)
        if arrived not in self.versions:
            raise Lost(f"what arrived is no version of the source: {documents.difference(arrived, self.versions[-1])}")
        left = [entry for entry in os.listdir(self.destination) if os.path.join(self.destination, entry) != self.target]
        if left:
            raise Lost(f"left behind in the destination: {left[:3]}")

    def clean(self) -> None:
        for process in (self.accepting, self.offering):
            if process:
                faults.end_quietly(process)
        if self.mounted:
            subprocess.run(["umount", "--lazy", self.destination], check=False)
        for path in (self.folder, self.destination):
            documents.remove(path)
