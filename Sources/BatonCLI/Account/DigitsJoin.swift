// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonNode
import Glibc
import SystemPackage

struct DigitsJoin {
    let store: AccountStore
    /// The name that the user chose for this device; nil for the host's.
    let deviceName: String?
    let isConfirmed: Bool

    /// Joins by an invitation.
    ///
    /// - Parameter text: where it is: `HOST` or `HOST:PORT`, as the inviting device shows it; nil to look for it on the
    ///   network.
    func run(at text: String?) async throws {
        guard isConfirmed || Terminal.isTerminal(.standardInput) else {
            throw CommandError.usage(
                "joining by digits asks a question: run it at a terminal, or add --yes to trust the device at --address"
            )
        }
        let join = try PairingJoin(name: deviceName ?? DeviceName.fromHost())
        await Interrupts.watch {
            Output.say("\nNothing was changed.")
            _exit(ExitStatus.interrupted.rawValue)
        }
        defer { Interrupts.stop() }
        let addresses =
            if let text { try Self.addresses(text) } else { try await InvitationFinder.find() }
        do {
            try await join.run(
                at: addresses, show: Self.show,
                store: { handedOver in
                    try await confirm(handedOver)
                    // An interruption now would leave an account that the inviting device does not know of.
                    await Interrupts.watch([SIGINT, SIGTERM, SIGHUP]) {}
                    try finish(handedOver)
                })
        } catch is SocketError {
            throw CommandError(
                .unreachable,
                "nobody answers at \(addresses[0]): is the invitation still open, and does a firewall there let TCP"
                    + " port \(addresses[0].port ?? InvitationServer.port) in?")
        }
    }

    private static func show(_ digits: String) throws {
        Output.say("Type these digits on the inviting device:")
        try Output.line("\(digits.prefix(3)) \(digits.suffix(3))")
    }

    private func confirm(_ handedOver: HandedOver) async throws {
        let inviter = SafeText.escaped(handedOver.inviterName)
        try await Confirmation.require(
            isGiven: isConfirmed, consequence: "the digits may have been typed on another device",
            question: """
                The inviting device calls itself “\(inviter)”.
                Does its own screen say that the digits are right, and show this account?
                \(handedOver.account.id)
                """)
    }

    private func finish(_ handedOver: HandedOver) throws {
        let account = try store.finish(handedOver.account)
        Output.say("This device, \(SafeText.escaped(account.deviceName)), is in account \(account.id) now.")
    }

    /// The addresses that a text names, with the default port if it has none. Blocks while it looks a name up: there is
    /// nothing else to do meanwhile.
    private static func addresses(_ text: String) throws(CommandError) -> [SocketAddress] {
        let port = InvitationServer.port
        if let address = SocketAddress(text), address.port != nil { return [address] }
        if let address = IPAddress(text) { return [.ip(address, port: port)] }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let host = parts.first, !host.isEmpty, let named = parts.count > 1 ? UInt16(parts[1]) : port else {
            throw .usage("--address takes a host or HOST:PORT, such as 192.168.1.7")
        }
        do {
            return try HostName.addresses(of: String(host), port: named)
        } catch {
            throw CommandError(.unreachable, SafeText.escaped("\(error)"))
        }
    }
}

extension CommandError {
    init(_ error: PairingError) {
        let (status, message): (ExitStatus, String) =
            switch error {
            case .ended(.digits): (.refused, "three tries failed there: start anew on both devices")
            case .ended(.turnedAway): (.refused, "the other device turned this one away")
            case .ended(.busy): (.unreachable, "the other device is busy with another joiner: try again soon")
            case .ended(.time), .timedOut:
                (.unreachable, "the invitation has ended there: start anew on both devices")
            case .ended(.version), .version:
                (.failed, "the other device pairs by another version: update Baton on both")
            case .ended, .malformed, .disconnected:
                (.unreachable, "the link broke, and nothing was stored: start anew")
            }
        self.init(status, message)
    }
}

/// Finds the invitation of another device on the network, and lets the user choose if there are several.
enum InvitationFinder {
    /// How long to wait for further invitations after the first: 2 s.
    private static let settling = Duration.seconds(2)

    static func find() async throws -> [SocketAddress] {
        Output.say(
            """
            Looking for an invitation: run `baton account invite` on a device of yours. If
            none is found, press ^C and run `baton account join --address ADDRESS` with the
            address that the other device shows. With the account key: --key.
            """)
        let search = try InvitationDiscovery()
        let found: [FoundInvitation]
        do {
            found = try await look(with: search)
        } catch {
            await search.stop()
            throw error
        }
        await search.stop()
        return try await choose(from: found).addresses
    }

    private static func look(with search: InvitationDiscovery) async throws -> [FoundInvitation] {
        let found = Lock<[FoundInvitation]>([])
        let (events, feed) = AsyncStream<InvitationDiscovery.Event>.makeStream()
        let searching = Task {
            await search.run { event in
                if case .found(let now) = event { found.withLock { $0 = now } }
                feed.yield(event)
            }
        }
        let timer = Task {
            try await Alarm.sleep(for: Invitation.lifetime)
            feed.finish()
        }
        defer {
            searching.cancel()
            timer.cancel()
        }
        for await event in events {
            if case .unavailable(let reason) = event {
                throw CommandError(
                    .unreachable,
                    "invitations cannot be looked for. \(reason) Or use the address that the other device shows:"
                        + " baton account join --address ADDRESS")
            }
            guard case .found(let now) = event, !now.isEmpty else { continue }
            try await Alarm.sleep(for: settling)
            let found = found.withLock { $0 }
            if !found.isEmpty { return found }
        }
        throw CommandError(
            .unreachable, "no invitation was seen: are both devices in one network?")
    }

    private static func choose(from found: [FoundInvitation]) async throws -> FoundInvitation {
        if found.count == 1, let only = found.first {
            let tag = only.tag
            Output.say("Found the invitation \(tag) at \(only.addresses[0]). The other device shows \(tag) too.")
            return only
        }
        let lines = found.map { "\($0.tag)  \($0.addresses[0])" }
        Output.say("Several devices invite. Which one is yours? It shows the same four characters.")
        return found[try await NumberedChoice(lines: lines).ask("Which one?")]
    }
}
