# SPDX-License-Identifier: Apache-2.0

"""The promise about what differs: of 1 GiB with 1 % edited in ten places, and a byte put in front, under 3 % crosses."""

import os
import random
import subprocess

import documents
import faults
from hosts import Host, wait_until

SIZE = 1 << 30
EDITS = 10
PROMISED = 0.03


def check(origin: Host, continuing: Host, seed: int) -> str | None:
    """Sends such a document to a host that has it as it was before; what is wrong, or None."""
    chance = random.Random(f"{seed}/delta")
    folder = os.path.join(os.fsencode(origin.home), b"delta")
    destination = os.path.join(os.fsencode(continuing.home), b"delta-destination")
    before, source = os.path.join(folder, b"before"), os.path.join(folder, b"large.img")
    os.mkdir(folder)
    os.mkdir(destination)
    offering = None
    try:
        with open(before, "wb") as file:
            for _ in range(SIZE // documents.MEGABYTE):
                file.write(documents.noise(chance, documents.MEGABYTE))
        with open(before, "rb") as old, open(source, "wb") as new:
            new.write(b"!")
            while piece := old.read(documents.MEGABYTE):
                new.write(piece)
            for _ in range(EDITS):
                length = SIZE // 100 // EDITS
                new.seek(chance.randrange(SIZE - length))
                new.write(documents.noise(chance, length))
        offering, event = origin.offer(os.fsdecode(source))
        continuing.sees(event["id"], 60)
        before_it = [host.sent_bytes() for host in (origin, continuing)]
        done = subprocess.run(
            continuing.command(
                continuing.baton_path, "accept", event["id"], "--to", os.fsdecode(destination), "--against",
                os.fsdecode(before), "--json"),
            capture_output=True, text=True, timeout=900)
        if done.returncode:
            return f"baton accept --against ended with {done.returncode}: {done.stderr.strip()[-200:]}"
        # Upstream as well: what tells the origin which bytes are there already.
        down, up = (host.sent_bytes() - earlier for host, earlier in zip((origin, continuing), before_it))
        same = wait_until(lambda: os.path.exists(os.path.join(destination, b"large.img")), 10, "nothing arrived")
        if not same or documents.version(os.path.join(destination, b"large.img")) != documents.version(source):
            return "what arrived is not the source"
        size = os.path.getsize(source)
        share = (down + up) / size
        print(
            f"  1 GiB, 1 % edited in {EDITS} places, a byte in front: {100 * share:.2f} % of it crossed "
            f"({100 * down / size:.2f} % down, {100 * up / size:.2f} % up)",
            flush=True)
        return None if share < PROMISED else f"{100 * share:.2f} % crossed, and {100 * PROMISED:.0f} % are promised"
    finally:
        if offering:
            faults.end_quietly(offering)
        documents.remove(folder)
        documents.remove(destination)
