"""One large file from page cache to disk: Baton against curl from nginx over TLS 1.3 and scp, interleaved."""

import os
import subprocess

from competitors import Nginx, SSHServer
from hosts import Host, Trouble, children_of, cpu_of, end, ended_after, now
from statistic import mebibytes, median, table

GIB = 1024**3


def measure(hosts: list[Host], size: int, rounds: int) -> None:
    origin, continuing = hosts[0], hosts[1]
    name = "large.bin"
    source = f"{origin.home}/{name}"
    make(source, size)
    nginx, ssh = Nginx(origin), SSHServer(origin)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in hosts[:2]:
        host.forget_peak_memory()

    contenders = {
        "baton": lambda folder: [continuing.baton_path, "accept", event["id"], "--to", folder, "--json"],
        "curl, nginx": lambda folder: nginx.fetch(name, f"{folder}/{name}"),
        "scp": lambda folder: ssh.fetch(name, f"{folder}/{name}"),
    }
    servers = {
        "baton": lambda: [origin.node.pid, continuing.node.pid],
        "curl, nginx": lambda: children_of(nginx.process.pid),
        "scp": lambda: children_of(ssh.process.pid),
    }
    done = {name: [] for name in contenders}
    safe = {name: [] for name in contenders}
    cpu = {name: [] for name in contenders}
    for number in range(rounds):
        for contender, command in contenders.items():
            folder = f"{continuing.home}/received"
            os.makedirs(folder)
            warm(source)
            os.sync()
            before = cpu_of(servers[contender]()) + children_cpu()
            began = now()
            process = continuing.spawn(*command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            with ended_after(60 + size / 20e6, process):
                said = process.stderr.read().decode()
                failed = process.wait()
            if failed:
                raise Trouble(f"{contender} failed after {now() - began:.0f} s ({failed}): {said.strip()[-300:]}")
            ended = now()
            sync(folder)
            synced = now()
            cpu[contender].append((cpu_of(servers[contender]()) + children_cpu() - before) / (size / GIB))
            done[contender].append(ended - began)
            safe[contender].append(synced - began)
            compare(source, f"{folder}/{name}", whole=number == 0)
            subprocess.run(["rm", "-rf", folder], check=True)
            print(
                f"  round {number + 1}  {contender:12} {ended - began:6.2f} s  {size / (ended - began) / 1e9:5.2f} GB/s"
                f"   with sync {synced - began:6.2f} s  {size / (synced - began) / 1e9:5.2f} GB/s",
                flush=True,
            )
    memory = [mebibytes(host.peak_memory()) for host in hosts[:2]]
    end(offer)
    nginx.stop()
    ssh.stop()
    os.unlink(source)

    def rate(times: list[float]) -> float:
        return size / median(times) / 1e9

    rows = []
    for contender in contenders:
        rows.append([
            contender,
            f"{rate(done[contender]):.2f} GB/s",
            f"{rate(done['baton']) / rate(done[contender]):.2f}",
            f"{rate(safe[contender]):.2f} GB/s",
            f"{rate(safe['baton']) / rate(safe[contender]):.2f}",
            f"{median(cpu[contender]):.2f} s",
        ])
    table(
        f"Throughput, page cache to disk, {size / GIB:.2f} GiB, medians of {rounds} interleaved rounds"
        " (Baton's command ends after its data is synced, the others' before: the second pair adds a sync to each)",
        ["", "command ended", "baton is x times", "and on disk", "baton is x times", "CPU per GiB, both ends"],
        rows,
    )
    table(
        "Memory, the most that was resident during these transfers",
        ["", "origin's node", "continuing node"],
        [["baton", *memory]],
    )


def make(path: str, size: int) -> None:
    """Noise, the same each time: a cipher over zeros under a fixed key."""
    command = 'head -c "$1" /dev/zero | openssl enc -aes-128-ctr -K "$3" -iv "$3" >"$2"'
    subprocess.run(["sh", "-c", command, "make", str(size), path, "0" * 31 + "1"], check=True)


def warm(path: str) -> None:
    """Has the whole file in the page cache."""
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(1 << 20)
        while file.readinto(buffer):
            pass


def sync(folder: str) -> None:
    """Waits until everything of this file system is on disk."""
    subprocess.run(["sync", "-f", folder], check=True)


def compare(source: str, copy: str, whole: bool) -> None:
    if os.path.getsize(source) != os.path.getsize(copy):
        raise Trouble(f"{copy} has {os.path.getsize(copy)} bytes")
    if whole and subprocess.run(["cmp", source, copy]).returncode:
        raise Trouble(f"{copy} is not what {source} is")


def children_cpu() -> float:
    """CPU seconds of all programs that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system
