// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Hears the TXT records that instances announce, and asks for nothing.
///
/// A changed record is announced unsolicited (RFC 6762, section 8.4). Avahi takes it into its cache, but tells only a
/// client that also asks for it. It repeats that question, and every host of the link hears every question of every
/// other host: traffic grows with the square of their number. So this listens beside Avahi and never sends.
///
/// Each interface has a socket for IPv4 and one for IPv6, bound to the multicast group: datagrams to the host's own
/// address stay with Avahi. A filter in the kernel drops everything but responses that begin with an instance of the
/// type. So the other multicast DNS of a link wakes nobody.
///
/// The sockets are closed when the value goes.
struct AnnouncementListener {
    /// The most interfaces that are listened on, each with two descriptors.
    static let interfaceBound = 16

    /// The DNS-SD service type, such as `_baton._tcp`.
    let type: String
    /// Where datagrams are read.
    let loop: EventLoop
    /// Called on the loop with each announced text.
    let heard: @Sendable (_ announced: AnnouncedText, _ interface: UInt32) -> Void
    private var sources: [UInt32: [ReadinessSource]] = [:]

    /// Listens on no interface yet.
    init(
        type: String, on loop: EventLoop,
        heard: @escaping @Sendable (_ announced: AnnouncedText, _ interface: UInt32) -> Void
    ) {
        self.type = type
        self.loop = loop
        self.heard = heard
    }

    /// Listens on an interface from now on. Idempotent; nothing beyond ``interfaceBound``.
    ///
    /// - Throws: a fault when neither family can be listened to, though the interface exists.
    mutating func join(_ interface: UInt32) throws(ResponderFault) {
        guard sources[interface] == nil else { return }
        // An interface that comes again, such as that of a dock, has another index.
        sources = sources.filter { InterfaceAddress.interfaceName($0.key) != nil }
        guard sources.count < Self.interfaceBound else { return }
        let opened = [MulticastSocket.ipv4(on: interface), MulticastSocket.ipv6(on: interface)].compactMap(\.self)
            .compactMap { source(of: $0, on: interface) }
        do {
            for source in opened { try source.resume() }
        } catch {
            throw ResponderFault(operation: "watch UDP port 5353", code: 0)
        }
        if !opened.isEmpty {
            sources[interface] = opened
        } else if InterfaceAddress.interfaceName(interface) != nil {
            throw ResponderFault(operation: "share UDP port 5353 with this program", code: 0)
        }
    }

    private func source(of socket: MulticastSocket, on interface: UInt32) -> ReadinessSource? {
        socket.keepAnnouncements(of: type)
        return socket.source(on: loop) { [type, heard] packet, _ in
            for text in AnnouncedText.all(in: packet, type: type) { heard(text, interface) }
        }
    }
}
