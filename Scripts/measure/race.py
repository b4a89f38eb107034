# SPDX-License-Identifier: Apache-2.0

"""Contenders that copy the same thing from one host to another, in turns."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

from hosts import Host, Trouble, children_of, cpu_of, ended_after, now
from statistic import median

GIB = 1024**3


@dataclass
class Contender:
    """One way to copy: its command on the continuing host, and the processes that serve it."""

    name: str
    #: The command that copies into a folder.
    command: Callable[[str], list[str]]
    #: Processes that work for it besides the command.
    servers: Callable[[], list[int]]
    #: Seconds until the command ended, and until its data was on the disk as well, of each round.
    done: list[float] = field(default_factory=list)
    safe: list[float] = field(default_factory=list)
    #: CPU seconds of both ends together, of each round.
    cpu: list[float] = field(default_factory=list)
    #: Hosts of which the busiest thread is wanted, and for each of them that one's share of the time, of each round.
    watched: list[Host] = field(default_factory=list)
    busiest: list[list[float]] = field(default_factory=list)


def baton(origin: Host, continuing: Host, activity: str, offer: subprocess.Popen) -> Contender:
    """Accepting an activity whose document is the thing that is copied."""
    return Contender(
        "baton",
        lambda folder: [continuing.baton_path, "accept", activity, "--to", folder, "--json"],
        lambda: [origin.node.pid, continuing.node.pid, offer.pid],
        watched=[origin, continuing],
    )


def served(name: str, command: Callable[[str], list[str]], server: subprocess.Popen) -> Contender:
    """A program that fetches from a server."""
    return Contender(name, command, lambda: children_of(server.pid))


def run(
    continuing: Host,
    contenders: list[Contender],
    rounds: int,
    size: int,
    source: str,
    compare: Callable[[str], None],
    slowest: float = 20e6,
    keep: bool = False,
) -> None:
    """Has each contender copy `source`, of `size` bytes, in each round; fills in their times.

    - compare: looks at what stands in the folder now, and throws Trouble when that is not the source.
    - slowest: bytes a second; whoever is slower is ended.
    - keep: copies stay until all is over. An ext4 without a journal gives the number of a file that was removed in the
      last minutes to no new one, and looks at all of these for each: who comes after many files would pay for them.
    """
    copies = []
    for number in range(rounds):
        for contender in contenders:
            folder = f"{continuing.home}/received-{len(copies)}"
            os.makedirs(folder)
            copies.append(folder)
            warm(source)
            os.sync()
            before = cpu_of(contender.servers()) + children_cpu()
            threads = [host.thread_times() for host in contender.watched]
            began = now()
            process = continuing.spawn(
                *contender.command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            with ended_after(60 + size / slowest, process):
                said = process.stderr.read().decode()
                failed = process.wait()
            if failed:
                raise Trouble(
                    f"{contender.name} failed after {now() - began:.0f} s ({failed}): {said.strip()[-300:]}"
                )
            ended = now()
            contender.busiest.append(
                [host.busiest_thread(before) / (ended - began) for host, before in zip(contender.watched, threads)]
            )
            subprocess.run(["sync", "-f", folder], check=True)
            synced = now()
            contender.cpu.append(cpu_of(contender.servers()) + children_cpu() - before)
            contender.done.append(ended - began)
            contender.safe.append(synced - began)
            compare(folder)
            if not keep:
                subprocess.run(["rm", "-rf", folder], check=True)
            print(
                f"  round {number + 1}  {contender.name:12} {ended - began:6.2f} s  {rate(size, ended - began)}"
                f"   with sync {synced - began:6.2f} s  {rate(size, synced - began)}",
                flush=True,
            )
    subprocess.run(["rm", "-rf", *copies], check=True)


def rate(size: int, seconds: float) -> str:
    """Bytes in a time, as people say it."""
    each = size / seconds
    return f"{each / 1e9:5.2f} GB/s" if each >= 1e8 else f"{each / 1e6:5.1f} MB/s"


HEADER = ["", "command ended", "baton is x times", "and on disk", "baton is x times", "CPU per GiB, both ends"]


def rows(contenders: list[Contender], size: int) -> list[list[str]]:
    """The medians, each next to the first contender's."""
    first = contenders[0]
    return [
        [
            contender.name,
            rate(size, median(contender.done)),
            f"{median(contender.done) / median(first.done):.2f}",
            rate(size, median(contender.safe)),
            f"{median(contender.safe) / median(first.safe):.2f}",
            f"{median(contender.cpu) / (size / GIB):.2f} s",
        ]
        for contender in contenders
    ]


def make(path: str, size: int) -> None:
    """Noise, the same each time: a cipher over zeros under a fixed key."""
    command = 'head -c "$1" /dev/zero | openssl enc -aes-128-ctr -K "$3" -iv "$3" >"$2"'
    subprocess.run(["sh", "-c", command, "make", str(size), path, "0" * 31 + "1"], check=True)


def warm(path: str) -> None:
    """Has a file, or all files of a folder, in the page cache."""
    buffer = bytearray(1 << 20)
    files = [path] if os.path.isfile(path) else files_of(path)
    for name in files:
        with open(name, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def files_of(folder: str) -> list[str]:
    """The paths of all files beneath a folder."""
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def same_file(source: str, copy: str) -> None:
    """Trouble when two files differ."""
    if os.path.getsize(source) != os.path.getsize(copy):
        raise Trouble(f"{copy} has {os.path.getsize(copy)} bytes")
    if subprocess.run(["cmp", source, copy]).returncode:
        raise Trouble(f"{copy} is not what {source} is")


def same_folder(source: str, copy: str) -> None:
    """Trouble when two folders differ."""
    done = subprocess.run(["diff", "-rq", "--no-dereference", source, copy], capture_output=True, text=True)
    if done.returncode:
        raise Trouble(f"{copy} is not what {source} is: {done.stdout.strip()[:300]}")


def children_cpu() -> float:
    """CPU seconds of all programs that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system
