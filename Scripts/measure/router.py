# SPDX-License-Identifier: Apache-2.0

"""A packet router between two lab hosts, on TUN devices: what crosses it comes late, and no faster than its link.

IPv4 between the two hosts goes through it; multicast, and with that discovery, stays on their bridge. It is a program of
the first host's, started by `Router`.
"""

import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

from hosts import Host, end, wait_until

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
DEVICE = "router0"
#: How long a packet may wait for the link, in seconds: more than the way there and back, so that one connection fills
#: it.
LONGEST_WAIT = 0.15


class Router:
    """The router's life, for `with`."""

    def __init__(self, first: Host, second: Host, delay: float, rate: float):
        self.hosts = [first, second]
        self.arguments = [
            str(delay), str(rate), first.address, second.address, str(second.holder()), first.congestion_control,
        ]  # fmt: skip

    def __enter__(self):
        first, second = self.hosts
        for host in self.hosts:
            # Link-local IPv6 would go past the router.
            host.run("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
        self.process = first.spawn("python3", __file__, *self.arguments)
        wait_until(lambda: route_of(first, second) and route_of(second, first), 10, "the router does not start")
        return self

    def __exit__(self, *_):
        end(self.process)
        for host in self.hosts:
            host.run("sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")


def route_of(host: Host, other: Host) -> bool:
    return DEVICE in host.run("ip", "route", "get", other.address)


class Direction:
    """Packets on their way from one device to the other."""

    def __init__(self, source: int, target: int, delay: float, rate: float):
        self.source, self.target, self.delay, self.rate = source, target, delay, rate
        self.waiting = collections.deque()
        #: When the link has sent what was taken.
        self.free = 0.0

    def take(self) -> None:
        """Takes what has come; drops what would have to wait too long."""
        while True:
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return
            at = time.monotonic()
            sent = max(at, self.free) + len(packet) * 8 / self.rate
            if sent - at > LONGEST_WAIT:
                continue
            self.free = sent
            self.waiting.append((sent + self.delay, packet))

    def give(self) -> None:
        """Hands on what is due."""
        at = time.monotonic()
        while self.waiting and self.waiting[0][0] <= at:
            os.write(self.target, self.waiting.popleft()[1])


def open_device(own: str, other: str, congestion_control: str) -> int:
    """A TUN device in the present network namespace, and the route to the other host through it."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    commands = f"link set {DEVICE} up mtu 1500\nroute add {other}/32 dev {DEVICE} src {own}"
    commands += f" congctl {congestion_control}\n"
    subprocess.run(["ip", "-batch", "-"], input=commands.encode(), check=True)
    return device


def main() -> None:
    delay, rate, first, second, holder, congestion_control = sys.argv[1:]
    one = open_device(first, second, congestion_control)
    with open(f"/proc/{holder}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
    two = open_device(second, first, congestion_control)
    ways = [Direction(one, two, float(delay), float(rate)), Direction(two, one, float(delay), float(rate))]
    while True:
        due = min((way.waiting[0][0] for way in ways if way.waiting), default=None)
        wait = None if due is None else max(0.0, due - time.monotonic())
        ready, _, _ = select.select([one, two], [], [], wait)
        for way in ways:
            if way.source in ready:
                way.take()
            way.give()


if __name__ == "__main__":
    main()
