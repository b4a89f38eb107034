// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonNode

/// Finds the invitation of another device on the network, and lets the user choose if there are several.
enum InvitationFinder {
    private enum Input: Sendable {
        case search(InvitationSearch.Event)
        /// Nothing was found for a while.
        case hint
        /// The first one was found a while ago.
        case settled
    }

    /// How long to wait before the hint: 10 s.
    private static let patience = Duration.seconds(10)
    /// How long to wait for further invitations after the first: 2 s.
    private static let settling = Duration.seconds(2)

    /// Returns where to join.
    static func find() async throws -> [SocketAddress] {
        Output.say("Looking for an invitation: run `baton account invite` on a device of yours.")
        let search = try InvitationSearch()
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

    private static func look(with search: InvitationSearch) async throws -> [FoundInvitation] {
        let (inputs, feed) = AsyncStream<Input>.makeStream()
        var tasks: [Task<Void, any Error>] = [
            Task { await search.run { feed.yield(.search($0)) } },
            Task {
                try await Alarm.sleep(for: patience)
                feed.yield(.hint)
                try await Alarm.sleep(for: Invitation.lifetime - patience)
                feed.finish()
            },
        ]
        defer { for task in tasks { task.cancel() } }
        var found: [FoundInvitation] = []
        for await input in inputs {
            switch input {
            case .search(.found(let now)):
                if found.isEmpty, !now.isEmpty {
                    tasks.append(
                        Task {
                            try await Alarm.sleep(for: settling)
                            feed.yield(.settled)
                        })
                }
                found = now
            case .search(.unavailable(let reason)):
                throw CommandError(
                    .unreachable, code: "responder",
                    "invitations cannot be looked for. \(reason) Or use the address that the other device shows:"
                        + " baton account join --address ADDRESS")
            case .hint where found.isEmpty:
                Output.say(
                    """
                    None yet. If the other device shows an address, press ^C and run
                    `baton account join --address ADDRESS`. With the account key: --key.
                    """)
            case .settled where !found.isEmpty:
                return found
            case .hint, .settled:
                break
            }
        }
        throw CommandError(
            .unreachable, code: "pairing", "no invitation was seen: are both devices in one network?")
    }

    private static func choose(from found: [FoundInvitation]) async throws -> FoundInvitation {
        if found.count == 1, let only = found.first {
            let tag = only.tag
            Output.say("Found the invitation \(tag) at \(only.addresses[0]). The other device shows \(tag) too.")
            return only
        }
        let lines = found.map { "\($0.tag)  \($0.addresses[0])" }
        guard NumberedChoice.isPossible else {
            throw CommandError.usage(
                "several devices invite (\(lines.joined(separator: ", "))): choose one with --address")
        }
        Output.say("Several devices invite. Which one is yours? It shows the same four characters.")
        return found[try await NumberedChoice(lines: lines).ask("Which one?")]
    }
}
