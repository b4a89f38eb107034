# SPDX-License-Identifier: Apache-2.0

"""Counts the multicast DNS that one host hears and sends. Run on the host: capture.py INTERFACE SECONDS.

It prints one JSON object: bytes of Ethernet frames by kind of packet, and bytes of questions and records by type.
"""

import collections
import json
import socket
import struct
import sys
import time

TYPES = {1: "A", 12: "PTR", 16: "TXT", 28: "AAAA", 33: "SRV", 47: "NSEC", 255: "ANY"}
PORT = 5353


def message(frame: bytes) -> bytes | None:
    """The DNS message of a frame; nothing of any other frame."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == 0x0800 and frame[23] == socket.IPPROTO_UDP:
        start = 14 + (frame[14] & 15) * 4
    elif kind == 0x86DD and frame[20] == socket.IPPROTO_UDP:
        start = 14 + 40
    else:
        return None
    return frame[start + 8 :] if PORT in struct.unpack_from("!HH", frame, start) else None


def after_name(data: bytes, at: int) -> int:
    while data[at] and data[at] < 0xC0:
        at += 1 + data[at]
    return at + (2 if data[at] else 1)


def count(data: bytes, kinds: collections.Counter, types: collections.Counter, length: int) -> None:
    flags, questions, answers, authorities, additional = struct.unpack_from("!5H", data, 2)
    kind = "answers" if flags & 0x8000 else "probes" if authorities else "questions"
    kinds[kind] += length
    at = 12
    for _ in range(questions):
        begin, at = at, after_name(data, at) + 4
        types[f"{kind}, {TYPES.get(struct.unpack_from('!H', data, at - 4)[0], 'other')} asked for"] += at - begin
    for _ in range(answers + authorities + additional):
        begin, at = at, after_name(data, at)
        kind_of_record, size = struct.unpack_from("!H6xH", data, at)
        at += 10 + size
        types[f"{kind}, {TYPES.get(kind_of_record, 'other')} records"] += at - begin


def main() -> None:
    interface, seconds = sys.argv[1], float(sys.argv[2])
    kinds, types, packets = collections.Counter(), collections.Counter(), 0
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    tap.bind((interface, 0))
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        tap.settimeout(left)
        try:
            frame = tap.recv(65536)
        except TimeoutError:
            break
        data = message(frame) if len(frame) > 60 else None
        if data and len(data) >= 12:
            packets += 1
            count(data, kinds, types, len(frame))
    print(json.dumps({"kinds": kinds, "types": types, "packets": packets}))


main()
