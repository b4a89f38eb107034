// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol
import BatonTLS
import BatonTestSupport
import BatonTransport
import Testing

@testable import BatonNode

/// The door of a node with a real socket: whoever is let in is served as far as the handshake.
final class Door: Sendable {
    private let listener: Listener
    let admissionControl: AdmissionControl

    /// - Parameters:
    ///   - device: whose door it is.
    ///   - gate: is asked before TLS is, as in every node; `nil` leaves all to the context's.
    init(
        of device: TestAccount.Device, _ context: TLSContext, gate: GateKeeper? = nil,
        limits: NodeLimits = NodeLimits()
    ) throws {
        admissionControl = AdmissionControl(
            CurrentAccount(device.account), context: context, gate: gate, limits: limits,
            over: EventLoopGroup(name: "door", count: 1)
        ) { connection in
            // Until it has ended somebody has to hold it.
            Task {
                await connection.start()
                await connection.ended()
            }
        }
        listener = try Listener.onAllAddresses(port: 0, on: ControlLoop.loop)
        listener.start { [admissionControl] socket in
            ControlLoop.assumeIsolated { admissionControl.receive(socket) }
        }
    }

    deinit {
        ControlLoop.execute { [admissionControl] in admissionControl.close() }
        listener.close()
    }

    /// Connects as a stranger does.
    func connect(to address: IPAddress = .ipv4Loopback) async throws -> Visit {
        try await Visit(port: try #require(listener.localAddress.port), at: address, of: self, on: ControlLoop.loop)
    }
}

/// A service that greets whoever connects, before anybody has shown anything.
final class Greeter: Sendable {
    private let loop = EventLoop(name: "greeter")
    private let listener: Listener
    private let sockets = Lock<[Socket]>([])

    init() throws {
        listener = try Listener.onAllAddresses(port: 0, on: loop)
        listener.start { [weak self] socket in
            _ = try? Array("220 ready\r\n".utf8).withUnsafeBytes { try socket.write($0) }
            self?.sockets.withLock { $0.append(socket) }
        }
    }

    deinit { listener.close() }

    func connect() async throws -> Visit {
        try await Visit(port: try #require(listener.localAddress.port), at: .ipv4Loopback, of: self, on: loop)
    }
}

/// One connection to a service, which is there for as long as somebody visits.
final class Visit: Sendable {
    /// How a visit went on.
    enum Reaction: Sendable, Hashable {
        case answered, closed, waits
    }

    private let socket: Socket
    private let service: any AnyObject & Sendable

    init(
        port: UInt16, at address: IPAddress, of service: any AnyObject & Sendable, on loop: EventLoop
    ) async throws {
        socket = try await Socket.connect(to: .ip(address, port: port), on: loop, timeout: .seconds(30))
        self.service = service
    }

    deinit { socket.close() }

    /// Says that nothing more comes.
    func end() { socket.shutdownWrite() }

    func send(_ bytes: [UInt8]) throws {
        #expect(try bytes.withUnsafeBytes { try socket.write($0) } == bytes.count)
    }

    /// The end, after all bytes; `waits` if it has not come in time.
    func lastReaction(within time: Duration) async throws -> Reaction {
        while true {
            let next = try await reaction(within: time)
            if next != .answered { return next }
        }
    }

    /// An answer or the end, whichever is first; `waits` if neither has come in time.
    func reaction(within time: Duration = .seconds(60)) async throws -> Reaction {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { buffer.deallocate() }
        var reaction = Reaction.waits
        do {
            try await eventually("there is an answer or an end", within: time) {
                switch try? socket.read(into: buffer) {
                case .bytes: reaction = .answered
                case .wouldBlock: return false
                case .endOfFile, nil: reaction = .closed
                }
                return true
            }
        } catch is Lab.Failure {
            return .waits
        }
        return reaction
    }
}
