// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonApplications
import BatonEventLoop
import BatonMessages
import BatonNode
import BatonTransport
import Dispatch

/// Words that a shell offers for an argument when the user presses the tab key.
///
/// Nothing is printed if no node runs, if it does not answer in time, or if a file has a mistake. The user sees the
/// reason when the command itself runs.
extension CompletionKind {
    /// The activities that other devices offer, by id.
    static let activities = fromNode { client in
        var ids: [String] = []
        for try await listing in try await client.activities(advertisedOnly: true) where listing.hasActivity {
            ids.append(ListedActivity(listing).shortID)
        }
        return ids
    }

    /// The activities that this device offers, by id.
    static let offers = fromNode { client in
        try await client.offers().map { ListedActivity($0.activity, device: "", deviceID: "").shortID }
    }

    /// The other devices of the account, by name. A device is offered by its id if another one has the same name, or if
    /// a shell would act on the name.
    static let devices = fromNode { client in
        let devices = try await client.devices().devices.filter(\.proved)
        return devices.map { device in
            let isUnique = devices.count { $0.name == device.name } == 1
            return isUnique && isPlain(device.name) ? device.name : String(device.deviceID.prefix(8))
        }
    }

    /// The applications of this device, by identifier.
    static let applications = CompletionKind.custom { _, _, _ in
        guard let registry = try? RegistryAccess.registry() else { return [] }
        return registry.installed().applications.map(\.identifier).filter(isPlain)
    }

    /// The shared folders of this device, by name.
    static let roots = CompletionKind.custom { _, _, _ in
        guard let home = try? CommandEnvironment.home() else { return [] }
        let roots = try? SharedRootsFile.read(SharedRootsFile.path(in: home))
        return roots?.roots.map(\.name).filter(isPlain) ?? []
    }

    /// The time that the node has to answer: 70 ms. The user waits for it.
    private static let patience = DispatchTimeInterval.milliseconds(70)

    private static func fromNode(
        _ question: @escaping @Sendable (NodeClient) async throws -> [String]
    ) -> CompletionKind {
        .custom { _, _, _ in
            let done = DispatchSemaphore(value: 0)
            let answer = Lock<[String]>([])
            // The process ends after this, so nobody cancels the question to a node that hangs.
            Task {
                let words = try? await NodeAccess.closing(NodeClient.connect(to: CommandEnvironment.home()), question)
                answer.withLock { $0 = words ?? [] }
                done.signal()
            }
            _ = done.wait(timeout: .now() + patience)
            return answer.withLock { $0 }.filter(isPlain)
        }
    }

    /// Whether a word means nothing but itself to every shell. The `compgen -W` of bash expands the words that it is
    /// given, so the name of another device could run a command.
    static func isPlain(_ word: String) -> Bool {
        // Scalar by scalar: a character can begin with a letter and end with a quotation mark of the shell.
        !word.hasPrefix("-") && !word.isEmpty && SafeText.escaped(word) == word
            && word.unicodeScalars.allSatisfy { scalar in
                scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                    || " ._-".unicodeScalars.contains(scalar)
            }
    }
}
