// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonMessages
import BatonNode

/// The answer of this user's node to the doctor.
enum NodeAnswer: Sendable {
    case status(WireStatusResponse)
    /// Nothing listens at the socket.
    case absent
    /// There is a socket, and no answer. The reason is one sentence.
    case silent(String)
}

/// Turns facts into findings. It has no state and does no I/O.
enum Diagnosis {
    /// Judges this machine.
    ///
    /// - Returns: at least one finding for each check of the group, in the order of ``Check``.
    static func machine(_ facts: MachineFacts, node: NodeAnswer) -> [Finding] {
        [account(facts)]
            + problems(of: .folders, facts, orElse: "only this user can use Baton's folders")
            + problems(of: .disk, facts, orElse: "the disk has room for Baton's files")
            + problems(of: .rules, facts, orElse: "the rules and the shared folders have no mistakes")
            + [handoff(facts), self.node(node, facts), limits(node, facts), bus(facts)]
    }

    private static func account(_ facts: MachineFacts) -> Finding {
        switch facts.accountError {
        case nil:
            .fine(.account, "this device has an account that can be used")
        case .noAccount?:
            .problem(
                .noAccount, of: "\(AccountError.noAccount)", remedy: ["baton"])
        case let error? where error.exposedPath != nil:
            .notMeasured(.account, because: "the account is not read while others can use its files")
        case let error?:
            .problem(.unusableAccount, of: "\(error)", remedy: error.isDamage ? giveUpAccount : [])
        }
    }

    /// `leave` wipes the account, and on the only device nobody has another one.
    private static let giveUpAccount = [
        "# restore the folder from a backup; only if there is none:", "baton account leave", "baton account join",
    ]

    private static func problems(of check: Check, _ facts: MachineFacts, orElse fine: String) -> [Finding] {
        let problems = facts.problems.filter { $0.check == check }
        return problems.isEmpty ? [.fine(check, fine)] : problems
    }

    private static func handoff(_ facts: MachineFacts) -> Finding {
        guard !facts.handoff.isOn else { return .fine(.handoff, "Handoff is on") }
        return .problem(
            .handoffOff, evidence: facts.handoff.problem.map { [$0] } ?? [], remedy: ["baton handoff on"])
    }

    private static func node(_ answer: NodeAnswer, _ facts: MachineFacts) -> Finding {
        switch answer {
        case .status(let status):
            return .fine(.node, "the node runs on port \(status.port)")
        case .absent:
            // The account comes first: no node runs without one.
            guard facts.accountError == nil else {
                return .notMeasured(.node, because: "a node needs the account first")
            }
            guard let port = facts.takenPort else {
                return .problem(
                    .noNode, evidence: ["nothing listens at \(facts.socketPath)"], remedy: [facts.startCommand])
            }
            return .problem(
                .portTaken, of: "\(port)", evidence: ["a program listens at port \(port)"],
                remedy: [
                    "sudo ss -ltnp 'sport = :\(port)'", "# end that program, or choose another port:",
                    "\(facts.startCommand) --port PORT",
                ])
        case .silent(let reason):
            return .notMeasured(.node, because: reason)
        }
    }

    private static func limits(_ answer: NodeAnswer, _ facts: MachineFacts) -> Finding {
        if !facts.canWatch {
            return .problem(
                .fewWatches,
                // A setting of inotify matters to nobody: Baton watches no files by it.
                remedy: [
                    "sudo sysctl fs.epoll.max_user_watches=$((2 * $(sysctl -n fs.epoll.max_user_watches)))"
                ])
        }
        guard case .status(let status) = answer else {
            return .notMeasured(.limits, because: "only a running node knows how many files it may open")
        }
        guard !status.lacksDescriptors else {
            return .problem(
                .fewDescriptors, evidence: ["\(HumanUnits.count(Int(status.connections), "connection"))"],
                remedy: facts.canInstallNode
                    ? [
                        "systemctl --user edit \(UserService.unit) # [Service] LimitNOFILE=65536",
                        "systemctl --user restart \(UserService.unit)",
                    ]
                    : ["ulimit -n 65536", "baton node"])
        }
        return .fine(.limits, "the node can open further files and connections")
    }

    private static func bus(_ facts: MachineFacts) -> Finding {
        guard let path = facts.silentBus else { return .fine(.bus, "the D-Bus system bus answers") }
        return .problem(.noBus, of: path, remedy: ["sudo systemctl start dbus"])
    }
}
