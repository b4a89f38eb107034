"""One file from one host to another: Baton against curl from nginx over TLS 1.3 and scp."""

import os

import race
from competitors import Nginx, SSHServer
from hosts import Host, end


def copy(
    hosts: list[Host], size: int, rounds: int, slowest: float = 20e6
) -> tuple[list[race.Contender], list[int], list[tuple[str, float]]]:
    """The contenders with their times; the most memory that each of the two nodes held; and of each the thread that was
    busiest, and for which share of its transfers' time: near 1 one connection is the limit, because a loop has it."""
    origin, continuing = hosts[0], hosts[1]
    name = "single.bin"
    source = f"{origin.home}/{name}"
    race.make(source, size)
    nginx, ssh = Nginx(origin), SSHServer(origin)
    offer, event = origin.offer(source)
    continuing.sees(event["id"])
    for host in hosts[:2]:
        host.forget_peak_memory()
    contenders = [
        race.baton(origin, continuing, event["id"], offer),
        race.served("curl, nginx", lambda folder: nginx.fetch(name, f"{folder}/{name}"), nginx.process),
        race.served("scp", lambda folder: ssh.fetch(name, f"{folder}/{name}"), ssh.process),
    ]
    threads = [host.thread_times() for host in hosts[:2]]
    race.run(
        continuing, contenders, rounds, size, source, lambda folder: race.same_file(source, f"{folder}/{name}"), slowest
    )
    memory = [host.peak_memory() for host in hosts[:2]]
    busiest = [busiest_since(before, host.thread_times(), sum(contenders[0].done)) for before, host in zip(threads, hosts)]
    end(offer)
    nginx.stop()
    ssh.stop()
    os.unlink(source)
    return contenders, memory, busiest


def busiest_since(
    before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]], seconds: float
) -> tuple[str, float]:
    """Of threads that last: those that read and write one document end with it."""
    return max(
        ((name, (time - before.get(thread, (name, 0))[1]) / seconds) for thread, (name, time) in after.items()),
        key=lambda entry: entry[1],
    )
