// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonProtocol
import CDNSSD
import Glibc

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
/// One caller at a time, from anywhere.
final class AnnouncementListener: Sendable {
    /// The most interfaces that are listened on, each with two descriptors.
    static let interfaceBound = 16
    /// The most texts that are handed on in a second: 10 % of a core. It stops a flood of changing records.
    static let rateBound = 1000

    private struct State {
        var sources: [UInt32: [ReadinessSource]] = [:]
        /// The last text of each instance that is listened for; empty when none is known.
        var texts: [String: [UInt8]] = [:]
        var rate = RateLimiter(capacity: rateBound, interval: .seconds(1) / rateBound)
        var isClosed = false
    }

    private let type: String
    private let loop: EventLoop
    private let heard: @Sendable (_ instance: String, _ interface: UInt32, _ text: [UInt8]) -> Void
    private let state = Lock(State())

    /// Listens on no interface yet.
    ///
    /// - Parameters:
    ///   - type: the DNS-SD service type, such as `_baton._tcp`.
    ///   - loop: where datagrams are read.
    ///   - heard: called on the loop with a text that differs from the instance's last one.
    init(
        type: String, on loop: EventLoop,
        heard: @escaping @Sendable (_ instance: String, _ interface: UInt32, _ text: [UInt8]) -> Void
    ) {
        self.type = type
        self.loop = loop
        self.heard = heard
    }

    deinit {
        close()
    }

    /// Listens on an interface from now on. Idempotent; nothing beyond ``interfaceBound``.
    ///
    /// - Throws: a fault when neither family can be listened to, though the interface exists.
    func join(_ interface: UInt32) throws(ResponderFault) {
        let gone: [ReadinessSource]? = state.withLock { state in
            guard state.sources[interface] == nil, !state.isClosed else { return nil }
            // An interface that comes again, such as that of a dock, has another index.
            let former = state.sources.keys.filter { InterfaceAddress.interfaceName($0) == nil }
            return former.flatMap { state.sources.removeValue(forKey: $0) ?? [] }
        }
        guard let gone else { return }
        for source in gone { source.cancel() }
        guard state.withLock({ $0.sources.count < Self.interfaceBound }) else { return }
        let sources = [MulticastSocket.ipv4(on: interface), MulticastSocket.ipv6(on: interface)].compactMap(\.self)
            .compactMap { source(of: $0, on: interface) }
        state.withLock { $0.sources[interface] = sources.isEmpty ? nil : sources }
        do {
            for source in sources { try source.resume() }
        } catch {
            state.withLock { $0.sources[interface] = nil }
            for source in sources { source.cancel() }
            throw ResponderFault(operation: "watch UDP port 5353", code: 0)
        }
        // The browse reports an interface that has gone meanwhile.
        if sources.isEmpty, InterfaceAddress.interfaceName(interface) != nil {
            throw ResponderFault(operation: "share UDP port 5353 with this program", code: 0)
        }
    }

    /// Hands on the texts of an instance that differ from `text`.
    func listen(for instance: String, after text: [UInt8]? = nil) {
        state.withLock { state in
            if let text {
                state.texts[instance] = text
            } else if state.texts[instance] == nil {
                state.texts[instance] = []
            }
        }
    }

    /// Hands on nothing more of an instance.
    func ignore(_ instance: String) {
        state.withLock { $0.texts[instance] = nil }
    }

    /// Hands on nothing more of any instance.
    func ignoreAll() {
        state.withLock { $0.texts = [:] }
    }

    /// Stops listening for good. Idempotent.
    func close() {
        let sources = state.withLock { state in
            state.isClosed = true
            defer { state.sources = [:] }
            return state.sources.values.flatMap { $0 }
        }
        for source in sources { source.cancel() }
    }

    private func source(of socket: MulticastSocket, on interface: UInt32) -> ReadinessSource? {
        socket.keepAnnouncements(of: type)
        return socket.source(on: loop) { [weak self] packet, _ in
            guard let self else { return }
            for text in AnnouncedText.all(in: packet, type: type) where isNews(text) {
                heard(text.instance, interface, text.text)
            }
        }
    }

    private func isNews(_ announced: AnnouncedText) -> Bool {
        let now = Instant(nanoseconds: MonotonicClock.nanoseconds())
        return state.withLock { state in
            guard let last = state.texts[announced.instance], last != announced.text, state.rate.take(at: now) else {
                return false
            }
            state.texts[announced.instance] = announced.text
            return true
        }
    }
}
