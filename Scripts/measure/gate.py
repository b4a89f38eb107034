"""What a stranger's connection costs a node: the gate closes it without a byte."""

import ssl

from hosts import Host, Trouble, cpu_of, now
from statistic import table

# What a refused connection may cost, in microseconds of the node's CPU, on average.
BOUND = 100

# Connects one after the other, says its line of standard input each time, and prints how many bytes were answered.
PROBER = """
import socket, sys
address, port, count, said = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), bytes.fromhex(sys.argv[4])
answered = 0
for _ in range(count):
    with socket.create_connection((address, port), 10) as s:
        s.sendall(said) if said else s.shutdown(socket.SHUT_WR)
        try:
            while piece := s.recv(4096):
                answered += len(piece)
        except ConnectionResetError:
            pass
print(answered)
"""


def client_hello(server_name: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["baton/1"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=server_name)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def measure(hosts: list[Host], count: int) -> None:
    origin, stranger = hosts[0], hosts[1]
    port = origin.objects("status")[0]["port"]
    visits = [
        ("a ClientHello with a forged token", client_hello("a" * 52 + ".baton.invalid")),
        ("a ClientHello without a token", client_hello("example.org")),
        ("no TLS at all", b"GET / HTTP/1.1\r\n\r\n"),
        ("a connection and nothing more", b""),
    ]
    rows, costs = [], []
    for name, said in visits:
        # Once for the caches.
        for probes in (count // 10 + 1, count):
            cpu, began = cpu_of([origin.node.pid]), now()
            answered = stranger.run("python3", "-c", PROBER, origin.address, str(port), str(probes), said.hex())
            cpu, took = cpu_of([origin.node.pid]) - cpu, now() - began
        if int(answered):
            raise Trouble(f"{name} was answered with {answered.strip()} bytes")
        costs.append(cpu / count * 1e6)
        rows.append([name, f"{costs[-1]:.0f} µs", f"{took / count * 1e6:.0f} µs", answered.strip(), str(count)])
    table("A stranger at the gate", ["", "CPU of the node", "in all", "bytes answered", "of"], rows)
    average = sum(costs) / len(costs)
    if average >= BOUND:
        raise Trouble(f"a refused connection costs {average:.0f} µs on average, and may cost {BOUND}")
