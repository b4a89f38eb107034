# SPDX-License-Identifier: Apache-2.0

"""One file from one host to another: Baton against curl from nginx over TLS 1.3 and scp."""

import os

import race
from competitors import Nginx, SSHServer
from hosts import Host, end


def copy(
    hosts: list[Host], size: int, rounds: int, slowest: float = 20e6
) -> tuple[list[race.Contender], list[int]]:
    """The contenders with their times, and the most memory that the two nodes held."""
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
    race.run(
        continuing, contenders, rounds, size, source, lambda folder: race.same_file(source, f"{folder}/{name}"), slowest
    )
    memory = [host.peak_memory() for host in hosts[:2]]
    end(offer)
    nginx.stop()
    ssh.stop()
    os.unlink(source)
    return contenders, memory
