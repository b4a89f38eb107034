// SPDX-License-Identifier: Apache-2.0

package import BatonEventLoop
import CDNSSD
import Glibc

/// Finds out whether multicast DNS passes, for the doctor.
///
/// Linux gives a multicast packet back to the listeners of the host that sent it, through the packet filter of the
/// interface. So this asks a question, and listens for it:
///
/// - Its own question comes back if the filters of this machine let multicast DNS out and in.
/// - A question that the responder asks comes back if the responder uses the interface.
/// - The answers of other machines come if the network passes multicast in both directions.
///
/// The questions look like those of every device. The sockets are bound to the multicast group, as in
/// ``AnnouncementListener``, so that datagrams to the host's own address stay with the responder.
///
/// Callable from anywhere.
package final class MulticastEar: Sendable {
    /// The most interfaces that are listened on, each with two descriptors.
    static let interfaceBound = 16
    /// The most machines that are told apart.
    static let machineBound = 256
    /// The most records that are kept of one machine, each of at most ``TextRecord/maximumLength`` bytes.
    static let textBound = 8
    /// The most addresses that are asked by unicast, each with a descriptor.
    package static let unicastBound = 8
    /// It asks once a second, because one lost packet must not look like a fault, and another ear may start later.
    static let interval = Duration.seconds(1)

    /// An interface that was listened on.
    package struct Interface: Sendable, Hashable {
        package let name: String
        package let index: UInt32
        /// Whether a question has left in an address family.
        package internal(set) var hasSent = false
        /// The error number of a question that could not be sent.
        package internal(set) var sendError: Int32?
        /// Whether an own question came back.
        package internal(set) var hearsItself = false
        /// Whether a question of the responder came.
        package internal(set) var hearsResponder = false
    }

    /// The packets of one address.
    package struct Heard: Sendable, Hashable {
        /// The TXT records of the service type, each once.
        package internal(set) var texts: [[UInt8]] = []
        /// Whether it asked for the instance that was listened for.
        package internal(set) var asks = false
    }

    /// The answer of an address that was asked by unicast.
    package enum Unicast: Sendable, Hashable {
        case answered([[UInt8]])
        /// The machine is there, and nothing listens at the port of multicast DNS.
        case refused
        case silent
    }

    /// The question of this machine's responder.
    package enum Responder: Sendable, Hashable {
        /// It has not returned.
        case waiting
        case asks
        /// The daemon or D-Bus is missing.
        case absent
        /// It cannot ask, for a reason in one sentence.
        case failed(String)
    }

    /// Everything that was heard so far.
    package struct Report: Sendable {
        package var interfaces: [Interface] = []
        package internal(set) var heard: [IPAddress: Heard] = [:]
        package internal(set) var unicast: [IPAddress: Unicast] = [:]
        fileprivate mutating func refuse(_ address: IPAddress) {
            if unicast[address] == .silent { unicast[address] = .refused }
        }
        package internal(set) var responder = Responder.waiting
        /// By how much this program ran later than it should have.
        package internal(set) var worstDelay = Duration.zero
        /// Whether this program ran so late that silence says nothing: by more than 500 ms.
        package var isLate: Bool { worstDelay > .milliseconds(500) }
    }

    private struct Socket: Sendable {
        let descriptor: Int32
        let interface: UInt32
        let group: SocketAddress
        let source: ReadinessSource
    }

    private struct State {
        var report = Report()
        var sockets: [Socket] = []
        var unicast: [(address: IPAddress, descriptor: Int32, source: ReadinessSource)] = []
        var isClosed = false
    }

    /// The instance that this asks for. Another ear listens for it.
    package let label: String
    private let ownLabel: String
    private let listeningFor: String
    private let type: String
    private let loop: EventLoop
    private let responder: ResponderQuestion
    private let state = Lock(State())

    /// Opens the sockets; asks nothing yet.
    ///
    /// - Parameters:
    ///   - saying: plausible: the instance that this asks for.
    ///   - listeningFor: the instance that an ear on another machine asks for.
    ///   - addresses: are asked by unicast; at most ``unicastBound``.
    ///   - interfaces: the addresses of this machine.
    ///   - executor: for the calls of the responder, which block.
    package init(
        saying label: String, listeningFor: String, asking addresses: [IPAddress], interfaces: [InterfaceAddress],
        type: String = DiscoveryConfiguration().serviceType, on loop: EventLoop, executor: BlockingExecutor
    ) {
        self.label = label
        self.listeningFor = listeningFor
        self.type = type
        self.loop = loop
        ownLabel = InstanceName.random()
        responder = ResponderQuestion(on: executor)
        var seen: Set<UInt32> = []
        for interface in interfaces where interface.isMulticast && seen.count < Self.interfaceBound {
            guard seen.insert(interface.interfaceIndex).inserted else { continue }
            listen(on: interface.interfaceIndex, name: interface.interfaceName)
        }
        for address in addresses.prefix(Self.unicastBound) { openUnicast(address) }
    }

    deinit {
        close()
    }

    /// Everything that was heard so far.
    package var report: Report { state.withLock { $0.report } }

    /// Asks and listens for a time, or until the task is cancelled. Call it once.
    package func run(for duration: Duration) async {
        Task { [weak self, responder, ownLabel, type] in
            let answer = await responder.ask(instance: ownLabel, type: type)
            self?.state.withLock { $0.report.responder = answer }
        }
        let (start, step) = (ContinuousClock.now, Duration.milliseconds(100))
        var next = start
        while ContinuousClock.now - start < duration {
            if ContinuousClock.now >= next {
                ask()
                next += Self.interval
            }
            let before = ContinuousClock.now
            guard (try? await Alarm.sleep(for: step)) != nil else { return }
            let delay = ContinuousClock.now - before - step
            state.withLock { $0.report.worstDelay = max($0.report.worstDelay, delay) }
        }
    }

    /// Stops listening for good. Idempotent.
    package func close() {
        let sources = state.withLock { state in
            state.isClosed = true
            defer { (state.sockets, state.unicast) = ([], []) }
            return state.sockets.map(\.source) + state.unicast.map(\.source)
        }
        for source in sources { source.cancel() }
        // The responder may hang: nobody waits for it.
        Task { [responder] in await responder.close() }
    }

    // MARK: - Asking

    private func ask() {
        let packet = MulticastQuery.packet(type: type, instance: label)
        state.withLock { state in
            guard !state.isClosed else { return }
            for socket in state.sockets {
                let error = Self.send(packet, socket.descriptor, to: socket.group)
                guard let index = state.report.interfaces.firstIndex(where: { $0.index == socket.interface }) else {
                    continue
                }
                if let error { state.report.interfaces[index].sendError = error }
                if error == nil { state.report.interfaces[index].hasSent = true }
            }
            for (address, descriptor, _) in state.unicast {
                // The port of an earlier question may have been refused, which this call tells.
                if Self.send(packet, descriptor, to: nil) == ECONNREFUSED { state.report.refuse(address) }
            }
        }
    }

    /// - Parameter group: nil for a connected socket.
    /// - Returns: the error number; nil if it was sent.
    private static func send(_ packet: [UInt8], _ descriptor: Int32, to group: SocketAddress?) -> Int32? {
        let flags = Int32(truncatingIfNeeded: MSG_NOSIGNAL)
        let count =
            if let group {
                (try? group.withSystemAddress { sendto(descriptor, packet, packet.count, flags, $0, $1) }) ?? -1
            } else {
                Glibc.send(descriptor, packet, packet.count, flags)
            }
        return count < 0 ? errno : nil
    }

    // MARK: - Listening

    private func listen(on interface: UInt32, name: String) {
        let groups: [(MulticastSocket?, IPAddress?)] = [
            (MulticastSocket.ipv4(on: interface), IPAddress("224.0.0.251")),
            (MulticastSocket.ipv6(on: interface), IPAddress("ff02::fb")?.scoped(to: interface)),
        ]
        state.withLock { $0.report.interfaces.append(Interface(name: name, index: interface)) }
        for (socket, group) in groups {
            guard let socket, let group else { continue }
            socket.setSending(on: interface, isIPv4: group.isIPv4)
            let number = socket.rawValue
            let source = socket.source(on: loop) { [weak self] in self?.hear($0, from: $1, on: interface) }
            guard let source, (try? source.resume()) != nil else { continue }
            state.withLock {
                $0.sockets.append(
                    Socket(
                        descriptor: number, interface: interface,
                        group: .ip(group, port: MulticastSocket.port), source: source))
            }
        }
    }

    private func hear(_ packet: UnsafeRawBufferPointer, from address: IPAddress, on interface: UInt32) {
        let texts = AnnouncedText.all(in: packet, type: type).map(\.text)
        let asked = MulticastQuery.instances(in: packet, type: type)
        state.withLock { state in
            if let index = state.report.interfaces.firstIndex(where: { $0.index == interface }) {
                if asked.contains(label) { state.report.interfaces[index].hearsItself = true }
                if asked.contains(ownLabel) { state.report.interfaces[index].hearsResponder = true }
            }
            guard !texts.isEmpty || asked.contains(listeningFor) else { return }
            guard state.report.heard.count < Self.machineBound || state.report.heard[address] != nil else { return }
            var heard = state.report.heard[address] ?? Heard()
            if asked.contains(listeningFor) { heard.asks = true }
            for text in texts where !heard.texts.contains(text) {
                // The newest count, so that a flood of changing records hides nobody for long.
                if heard.texts.count == Self.textBound { heard.texts.removeFirst() }
                heard.texts.append(text)
            }
            state.report.heard[address] = heard
        }
    }

    private func openUnicast(_ address: IPAddress) {
        state.withLock { $0.report.unicast[address] = .silent }
        guard let socket = MulticastSocket.connected(to: .ip(address, port: MulticastSocket.port)) else { return }
        let number = socket.rawValue
        let source = socket.source(on: loop) { [weak self] in
            self?.state.withLock { $0.report.refuse(address) }
        } handler: { [weak self] packet, _ in
            self?.hearAnswer(packet, of: address)
        }
        guard let source, (try? source.resume()) != nil else { return }
        state.withLock { $0.unicast.append((address, number, source)) }
    }

    private func hearAnswer(_ packet: UnsafeRawBufferPointer, of address: IPAddress) {
        let texts = AnnouncedText.all(in: packet, type: type, isUnicast: true).map(\.text)
        state.withLock { state in
            var all: [[UInt8]] = []
            if case .answered(let before) = state.report.unicast[address] { all = before }
            for text in texts where !all.contains(text) && all.count < Self.textBound { all.append(text) }
            state.report.unicast[address] = .answered(all)
        }
    }
}
