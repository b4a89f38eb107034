// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
package import BatonMessages
import SystemPackage

/// The answer of this user's node to the doctor.
package enum NodeAnswer: Sendable {
    case status(WireStatusResponse)
    /// Nothing listens at the socket.
    case absent
    /// There is a socket, and no answer. The reason is one sentence.
    case silent(String)
}

/// Turns facts into findings. It has no state and does no I/O.
package enum Diagnosis {
    /// Judges this machine.
    ///
    /// - Returns: at least one finding for each check of the group, in the order of ``Check``.
    package static func machine(_ facts: MachineFacts, node: NodeAnswer) -> [Finding] {
        [account(facts)] + folders(facts) + disks(facts) + rules(facts)
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

    private static let unit = "baton.service"

    /// `leave` wipes the account, and on the only device nobody has another one.
    private static let giveUpAccount = [
        "# restore the folder from a backup; only if there is none:", "baton account leave", "baton account join",
    ]

    private static func folders(_ facts: MachineFacts) -> [Finding] {
        guard !facts.exposures.isEmpty else { return [.fine(.folders, "only this user can use Baton's folders")] }
        return facts.exposures.map { exposure in
            let word = ShellWord.quoted(exposure.path.string)
            let mode = String(exposure.mode, radix: 8)
            let evidence = ["mode \(mode), user \(exposure.owner)"]
            guard exposure.owner == facts.user else {
                return .problem(
                    .wrongRights, of: "\(exposure.path) belongs to another user", evidence: evidence,
                    remedy: ["sudo chown -R \(facts.user) \(word)"])
            }
            let (verb, change) =
                switch exposure.kind {
                case .secretFolder: ("use", "700")
                case .secretFile: ("use", "600")
                case .configuration: ("write to", "go-w")
                }
            return .problem(
                .wrongRights, of: "others can \(verb) \(exposure.path)", evidence: evidence,
                remedy: ["chmod \(change) \(word)"])
        }
    }

    private static func disks(_ facts: MachineFacts) -> [Finding] {
        guard !facts.unusableDisks.isEmpty else { return [.fine(.disk, "the disk has room for Baton's files")] }
        return facts.unusableDisks.map { disk in
            switch disk.reason {
            case .full(let bytes, let files):
                .problem(
                    .diskFull, of: "\(disk.path)",
                    evidence: ["\(HumanUnits.bytes(bytes)) and \(HumanUnits.count(Int(clamping: files), "file")) free"],
                    remedy: ["df -h \(ShellWord.quoted(disk.path.string))"])
            case .readOnly(let mount):
                .problem(
                    .diskReadOnly, of: "\(disk.path)", evidence: ["\(mount) is mounted read-only"],
                    remedy: [
                        "sudo dmesg | tail # if the disk has errors, repair it first",
                        "sudo mount -o remount,rw \(ShellWord.quoted(mount.string))",
                    ])
            }
        }
    }

    private static func rules(_ facts: MachineFacts) -> [Finding] {
        guard !facts.mistakes.isEmpty else {
            return [.fine(.rules, "the rules and the shared folders have no mistakes")]
        }
        return facts.mistakes.map { mistake in
            .problem(
                .rulesMistake, of: "\(mistake.path): \(mistake.error)",
                remedy: ["${EDITOR:-vi} \(ShellWord.quoted(mistake.path.string))", mistake.checkedBy])
        }
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
            let start = facts.canInstallNode ? "baton node install" : "baton node"
            guard let port = facts.takenPort else {
                return .problem(.noNode, evidence: ["nothing listens at \(facts.socketPath)"], remedy: [start])
            }
            return .problem(
                .portTaken, of: "\(port)", evidence: ["a program listens at port \(port)"],
                remedy: [
                    "sudo ss -ltnp 'sport = :\(port)'", "# end that program, or choose another port:",
                    "\(start) --port PORT",
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
                        "systemctl --user edit \(unit) # [Service] LimitNOFILE=65536",
                        "systemctl --user restart \(unit)",
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
