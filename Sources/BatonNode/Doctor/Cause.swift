// SPDX-License-Identifier: Apache-2.0

/// A reason why devices do not see each other, or why nothing is handed over. The raw value is its name in `--json`.
package enum Cause: String, CaseIterable, Sendable {
    case noAccount, unusableAccount
    case wrongRights
    case diskFull, diskReadOnly
    case rulesMistake
    case handoffOff
    case noNode
    case fewDescriptors, fewWatches
    case noBus

    /// The question whose answer it is.
    package var check: Check {
        switch self {
        case .noAccount, .unusableAccount: .account
        case .wrongRights: .folders
        case .diskFull, .diskReadOnly: .disk
        case .rulesMistake: .rules
        case .handoffOff: .handoff
        case .noNode: .node
        case .fewDescriptors, .fewWatches: .limits
        case .noBus: .bus
        }
    }

    /// One sentence without a full stop. The errors of other commands that have this cause use the same words.
    ///
    /// - Parameter subject: a path; for ``noAccount``, ``unusableAccount``, ``wrongRights`` and ``rulesMistake`` the
    ///   sentence itself; without meaning for a cause whose sentence names nothing.
    package func sentence(_ subject: String) -> String {
        switch self {
        case .noAccount, .unusableAccount, .wrongRights, .rulesMistake: subject
        case .diskFull: "the disk of \(subject) is full"
        case .diskReadOnly: "the disk of \(subject) is read-only"
        case .handoffOff: "Handoff is switched off on this device"
        case .noNode: "no node is running here"
        case .fewDescriptors: "the node can open no further files and connections"
        case .fewWatches: "this user can watch no further files and connections"
        case .noBus: "the D-Bus system bus does not answer at \(subject)"
        }
    }
}
