# SPDX-License-Identifier: Apache-2.0

"""Folders from page cache to disk: many small files, and files of mixed sizes, against rsync over SSH."""

import os
import random
import shutil

import goals
import race
from competitors import SSHServer
from hosts import Host, end
from statistic import mebibytes, table

#: Of the sizes and the bytes of mixed files; printed.
SEED = 20261122


def measure(hosts: list[Host], size: int, rounds: int) -> list[goals.Goal]:
    small = (10_000 * 4096, "10,000 files of 4 KiB in 100 folders", make_small, 1.2)
    mixed = (size, f"a folder of mixed sizes, {size / race.GIB:.2f} GiB", make_mixed, 1.5)
    reached = []
    # The many small files first: for a minute ext4 does not use a removed file's place again, and looks at each such
    # place whenever it makes a file, so that they would pay for what was removed before them. Their own copies stay.
    for total, title, make, least in (small, mixed):
        contenders, memory = copy(hosts, total, title, make, rounds)
        reached += [goals.faster(title, *contenders, least), goals.small(title, memory)]
    return reached


def copy(
    hosts: list[Host], size: int, title: str, make, rounds: int
) -> tuple[list[race.Contender], list[int]]:
    origin, continuing = hosts[0], hosts[1]
    source = f"{origin.home}/album"
    os.makedirs(source)
    make(source, size)
    ssh = SSHServer(origin)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in hosts[:2]:
        host.forget_peak_memory()
    contenders = [
        race.baton(origin, continuing, event["id"], offer),
        race.served("rsync -a, ssh", lambda folder: ssh.synchronize("album", folder), ssh.process),
    ]
    race.run(
        continuing, contenders, rounds, size, source,
        lambda folder: race.same_folder(source, f"{folder}/album"), slowest=2e6, keep=make is make_small,
    )  # fmt: skip
    memory = [host.peak_memory() for host in hosts[:2]]
    end(offer)
    ssh.stop()
    shutil.rmtree(source)
    table(
        f"Folder, page cache to disk: {title}, medians of {rounds} interleaved rounds"
        " (Baton's command ends after its data is synced, rsync's before)",
        race.HEADER,
        race.rows(contenders, size),
    )
    table("Memory meanwhile", ["", "origin's node", "continuing node"], [["baton", *map(mebibytes, memory)]])
    return contenders, memory


def make_small(folder: str, _size: int) -> None:
    noise = random.Random(SEED)
    for index in range(100):
        os.makedirs(f"{folder}/{index:02}")
        for number in range(100):
            with open(f"{folder}/{index:02}/{number:02}.txt", "wb") as file:
                file.write(noise.randbytes(4096))


def make_mixed(folder: str, size: int) -> None:
    """Sizes from 1 KiB to 256 MiB, each magnitude as likely as the next, in folders of 50."""
    print(f"  seed of the mixed folder: {SEED}")
    noise = random.Random(SEED)
    left, number = size, 0
    pool = noise.randbytes(8 << 20)
    while left > 0:
        count = min(left, int(2 ** noise.uniform(10, 28)))
        where = f"{folder}/{number // 50:03}"
        os.makedirs(where, exist_ok=True)
        with open(f"{where}/{number:05}.bin", "wb") as file:
            for offset in range(0, count, len(pool)):
                # Each piece differs, so that nothing could be found twice.
                file.write(number.to_bytes(4, "big") + offset.to_bytes(8, "big"))
                file.write(pool[12 : min(len(pool), count - offset)])
        os.truncate(f"{where}/{number:05}.bin", count)
        left -= count
        number += 1
