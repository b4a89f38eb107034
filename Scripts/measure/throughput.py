"""One large file from page cache to disk: Baton against curl from nginx over TLS 1.3 and scp."""

import os

import race
from competitors import Nginx, SSHServer
from hosts import Host, end
from statistic import mebibytes, table


def measure(hosts: list[Host], size: int, rounds: int) -> None:
    origin, continuing = hosts[0], hosts[1]
    name = "large.bin"
    source = f"{origin.home}/{name}"
    race.make(source, size)
    nginx, ssh = Nginx(origin), SSHServer(origin)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in hosts[:2]:
        host.forget_peak_memory()
    contenders = [
        race.baton(origin, continuing, event["id"]),
        race.served("curl, nginx", lambda folder: nginx.fetch(name, f"{folder}/{name}"), nginx.process),
        race.served("scp", lambda folder: ssh.fetch(name, f"{folder}/{name}"), ssh.process),
    ]
    race.run(
        continuing, contenders, rounds, size, source, lambda folder: race.same_file(source, f"{folder}/{name}")
    )
    memory = [mebibytes(host.peak_memory()) for host in hosts[:2]]
    end(offer)
    nginx.stop()
    ssh.stop()
    os.unlink(source)
    table(
        f"Throughput, page cache to disk, {size / race.GIB:.2f} GiB, medians of {rounds} interleaved rounds"
        " (Baton's command ends after its data is synced, the others' before: the second pair adds a sync to each)",
        race.HEADER,
        race.rows(contenders, size),
    )
    table(
        "Memory, the most that was resident during these transfers",
        ["", "origin's node", "continuing node"],
        [["baton", *memory]],
    )
