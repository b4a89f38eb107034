# SPDX-License-Identifier: Apache-2.0

"""What a stranger's connection costs a node: the gate closes it without a byte."""

import ssl

import goals
from hosts import Host, Trouble, cpu_of, now
from statistic import table

# The limit of a refused connection's cost, in microseconds of the node's CPU, on average.
BOUND = 100

# Connects one after the other, says what its standard arguments say, and prints how many bytes were answered. What is
# said in pieces comes in pieces, and nothing at all is said by whoever breaks the connection off while it is silent.
PROBER = """
import socket, struct, sys, time
address, port, count, pieces = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
answered = 0
for _ in range(count):
    with socket.create_connection((address, port), 10) as s:
        if not pieces:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            continue
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The node may be through with it before all is said.
        try:
            for number, piece in enumerate(pieces):
                if number: time.sleep(0.002)
                if piece == "end": s.shutdown(socket.SHUT_WR)
                else: s.sendall(bytes.fromhex(piece))
            while piece := s.recv(4096):
                answered += len(piece)
        except (ConnectionResetError, BrokenPipeError):
            pass
print(answered)
"""


def client_hello(server_name: str, protocols: list[str] = ["baton/1"]) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(protocols)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname=server_name)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def measure(hosts: list[Host], count: int) -> list[goals.Goal]:
    origin, stranger = hosts[0], hosts[1]
    port = origin.objects("status")[0]["port"]
    token = "a" * 52 + ".baton.invalid"
    forged = client_hello(token).hex()
    # Where a token's name could begin at each byte.
    dots = b"\x16\x03\x01" + (16_004).to_bytes(2, "big") + b"\x01" + (16_000).to_bytes(3, "big") + b"." * 16_000
    visits = [
        ("a ClientHello with a forged token", [forged]),
        ("the same in two pieces", [forged[:200], forged[200:]]),
        ("the same in crumbs of 20 bytes", [forged[at : at + 40] for at in range(0, len(forged), 40)]),
        # Which of them is the server's name only TLS can tell.
        ("one with two names of a token's form", [client_hello(token, ["baton/1", token]).hex()]),
        ("a ClientHello without a token", [client_hello("example.org").hex()]),
        ("a record full of dots", [dots.hex()]),
        ("no TLS at all", [b"GET / HTTP/1.1\r\n\r\n".hex()]),
        ("the end and nothing before it", ["end"]),
        ("nothing, and broken off", []),
    ]
    rows, costs = [], []
    for name, said in visits:
        # Crumbs take their time.
        tried = count // 5 if len(said) > 2 else count
        # Once for the caches.
        for probes in (tried // 10 + 1, tried):
            cpu, began = cpu_of([origin.node.pid]), now()
            answered = stranger.run("python3", "-c", PROBER, origin.address, str(port), str(probes), *said)
            cpu, took = cpu_of([origin.node.pid]) - cpu, now() - began
        if int(answered):
            raise Trouble(f"{name} was answered with {answered.strip()} bytes")
        cost = cpu / tried * 1e6
        rows.append([name, f"{cost:.0f} µs", f"{took / tried * 1e6:.0f} µs", answered.strip(), str(tried)])
        # The kernel keeps a connection on which nothing has come (TCP_DEFER_ACCEPT): the node sees none of those.
        if said:
            costs.append(cost)
    average = sum(costs) / len(costs)
    rows.append(["a stranger that reaches the node, on average", f"{average:.0f} µs", "", "", ""])
    table("A stranger at the gate", ["", "CPU of the node", "in all", "bytes answered", "of"], rows)
    return [goals.limit("a stranger at the gate", f"under {BOUND} µs", f"{average:.0f} µs", average < BOUND)]
