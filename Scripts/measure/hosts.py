# SPDX-License-Identifier: Apache-2.0

"""Lab hosts, and the Baton nodes on them, as the measurements see them."""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
# Of a packet: Ethernet, IPv4, and TCP with its timestamps.
HEADERS = 14 + 20 + 32


class Trouble(Exception):
    """Something that makes a measurement impossible, in one sentence."""


def now() -> float:
    """Seconds on the one clock that every measurement is read from."""
    return time.monotonic()


def wait_until(what, seconds: float, why: str, pause: float = 0.02):
    """The first true value of `what()`, asked for until it comes; Trouble when it does not."""
    end = now() + seconds
    while now() < end:
        value = what()
        if value:
            return value
        time.sleep(pause)
    raise Trouble(why)


def cpu_of(pids) -> float:
    """CPU seconds of these processes and of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def children_of(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            for child in file.read().split():
                found += children_of(int(child))
    except FileNotFoundError:
        pass
    return found


def end(process: subprocess.Popen, number: int = signal.SIGTERM, seconds: float = 15) -> None:
    """Ends a process politely, and waits for it."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def ended_after(seconds: float, process: subprocess.Popen):
    """Ends a process that takes too long, so that reading its output ends too."""
    guard = threading.Timer(seconds, process.kill)
    guard.start()
    try:
        yield
    finally:
        guard.cancel()


class Host:
    """One host of the lab."""

    def __init__(self, lab: list[str], folder: str, number: int, baton: str):
        self.lab = lab
        self.number = number
        self.home = f"{folder}/hosts/{number}/home"
        self.address = f"10.77.0.{number}"
        self.baton_path = baton
        self.node = None
        with open("/proc/sys/net/ipv4/tcp_congestion_control") as file:
            self.congestion_control = file.read().strip()

    def command(self, *argv: str) -> list[str]:
        return [*self.lab, "run", str(self.number), *argv]

    def spawn(self, *argv: str, **options) -> subprocess.Popen:
        """Starts a program; `lab run` becomes it, so that the pid is its own."""
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.command(*argv), **options)

    def run(self, *argv: str, **options) -> str:
        """Runs a program and gives what it printed; Trouble with what it said when it fails."""
        done = subprocess.run(self.command(*argv), capture_output=True, text=True, **options)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Trouble(f"host {self.number}: {' '.join(argv)} failed: {' / '.join(said[-3:])}")
        return done.stdout

    def lab_command(self, command: str, *argv: str) -> None:
        """A command of the lab about this host, such as `rate`."""
        subprocess.run([*self.lab, command, str(self.number), *argv], check=True)

    def use_congestion_control(self, name: str) -> None:
        """Has what the host sends to the others go by another congestion control of TCP than this machine's."""
        changes = [
            ["route", "change", "10.77.0.0/24", "dev", "eth0", "proto", "kernel", "scope", "link", "src", self.address],
            ["-6", "route", "change", "fe80::/64", "dev", "eth0", "proto", "kernel", "metric", "256"],
        ]
        for change in changes:
            self.run("ip", *change, "congctl", name)
        self.congestion_control = name

    def change_address(self, address: str) -> None:
        """Gives the host another IPv4 address in the place of its own."""
        before, self.address = self.address, address
        # In this order: with its first address a network loses all others of that network.
        self.run("ip", "address", "delete", f"{before}/24", "dev", "eth0")
        self.run("ip", "address", "add", f"{address}/24", "brd", "+", "dev", "eth0")
        self.run("ip", "route", "replace", "224.0.0.0/4", "dev", "eth0")
        self.use_congestion_control(self.congestion_control)

    def holder(self) -> int:
        """The process that keeps this host's network namespace alive."""
        with open(f"{os.path.dirname(self.home)}/holder.pid") as file:
            return int(file.read().split()[0])

    def baton(self, *argv: str, **options) -> str:
        return self.run(self.baton_path, *argv, **options)

    def objects(self, *argv: str) -> list[dict]:
        """What a `--json` command printed."""
        return [json.loads(line) for line in self.baton(*argv, "--json").splitlines() if line.strip()]

    def start_node(self, **environment: str) -> None:
        log = open(f"{self.home}/node.log", "ab")
        variables = [f"{name}={value}" for name, value in environment.items()]
        self.node = self.spawn("env", *variables, self.baton_path, "node", stdout=log, stderr=log)
        log.close()

        def answers():
            if self.node.poll() is not None:
                with open(f"{self.home}/node.log") as said:
                    raise Trouble(f"the node on host {self.number} ended: {said.read()[-400:]}")
            status = subprocess.run(
                self.command(self.baton_path, "status", "--json"), capture_output=True, timeout=30
            )
            return status.returncode == 0

        wait_until(answers, 30, f"the node on host {self.number} does not answer", 0.05)

    def stop_node(self) -> None:
        if self.node:
            end(self.node)
            self.node = None

    def sent_bytes(self) -> int:
        """Bytes that the host has sent so far, without the headers of packets."""
        for line in self.run("cat", "/proc/net/dev").splitlines():
            if line.strip().startswith("eth0:"):
                fields = line.partition(":")[2].split()
                return int(fields[8]) - HEADERS * int(fields[9])
        raise Trouble("no eth0")

    def thread_times(self) -> dict[int, float]:
        """CPU seconds so far of the node's threads, by their number."""
        times = {}
        for thread in os.listdir(f"/proc/{self.node.pid}/task"):
            # One may have ended meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{self.node.pid}/task/{thread}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
                times[int(thread)] = sum(int(field) for field in fields[11:13]) / TICKS
        return times

    def busiest_thread(self, before: dict[int, float]) -> float:
        """CPU seconds of the thread that has worked most since then; those that have ended do not count."""
        return max(time - before.get(thread, 0) for thread, time in self.thread_times().items())

    def peak_memory(self) -> int:
        """The most resident memory that the node ever had, in bytes."""
        with open(f"/proc/{self.node.pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise Trouble("no VmHWM")

    def forget_peak_memory(self) -> None:
        """Lets the peak begin anew at what is resident now."""
        with open(f"/proc/{self.node.pid}/clear_refs", "w") as file:
            file.write("5")

    def offer(self, *argv: str, **options) -> tuple[subprocess.Popen, dict]:
        """Offers an activity; gives the process that holds it and its `offered` event."""
        # Nobody reads what it says later, which would take the processor: there is room for it, some 5,000 events.
        process = self.spawn(self.baton_path, "offer", *argv, "--json", stdout=subprocess.PIPE, pipesize=1 << 20, **options)
        for line in process.stdout:
            event = json.loads(line)
            if event.get("event") == "offered":
                return process, event
        raise Trouble(f"host {self.number}: the offer ended before it was made")

    def sees(self, identifier: str, seconds: float = 30) -> None:
        """Waits until this host lists an activity."""
        wait_until(
            lambda: any(found.get("id") == identifier for found in self.objects("activities")),
            seconds,
            f"host {self.number} does not see activity {identifier}",
        )


def run_nodes_on(hosts: list[Host], count: int) -> None:
    """Lets the first hosts run a node, and no other."""
    stopping = [host for host in hosts[count:] if host.node]
    # All at once, because each takes its time to end.
    for host in stopping:
        host.node.terminate()
    for host in stopping:
        host.stop_node()
    for host in hosts[:count]:
        if not host.node:
            host.start_node()
