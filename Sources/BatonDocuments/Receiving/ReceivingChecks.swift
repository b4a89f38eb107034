// SPDX-License-Identifier: Apache-2.0

/// What receiving looks at before it believes another device, or its own folder. Every program checks all of it: only
/// the tests of attacks, inside this package, leave one out, to see that nothing else stands in the way.
package struct ReceivingChecks: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// A part file is made anew, beneath the folder and through no link.
    package static let newFile = ReceivingChecks(rawValue: 1)
    /// A document gets its name only where nothing else has it.
    package static let freeName = ReceivingChecks(rawValue: 2)
    /// What came matches its checksums.
    package static let checksums = ReceivingChecks(rawValue: 4)
    /// A hidden name is taken only when the user was shown one.
    package static let shownName = ReceivingChecks(rawValue: 8)

    /// All of a document has come, and nothing after it.
    package static let whole = ReceivingChecks(rawValue: 16)

    /// The paths of what is in a folder lead into it.
    package static let entryPaths = ReceivingChecks(rawValue: 32)
    /// The kernel finds them beneath the folder and through no link, whatever they say.
    package static let beneath = ReceivingChecks(rawValue: 64)
    /// A link leads nowhere outside of the folder that it is in.
    package static let linksInside = ReceivingChecks(rawValue: 128)

    /// What a rule of the user has accepted is held against it again when it is described.
    package static let rule = ReceivingChecks(rawValue: 256)

    /// The name of a document is one name, and no path.
    package static let label = ReceivingChecks(rawValue: 512)
    /// What is in a document is in a folder of it.
    package static let folders = ReceivingChecks(rawValue: 1024)
    /// Links are made when all files are there.
    package static let linksLast = ReceivingChecks(rawValue: 2048)
    /// The disk has room for what is said to come.
    package static let room = ReceivingChecks(rawValue: 4096)
    /// The kernel lets the thread that writes reach nothing but the folder, whatever it is told to.
    package static let confined = ReceivingChecks(rawValue: 8192)

    /// Of copies that nobody has named only files of some size are told of (``OlderCopy/leastSharedSize``).
    package static let shortCopies = ReceivingChecks(rawValue: 16_384)
    /// Of these nothing is told where a rule has accepted, and no user.
    package static let copiesByRule = ReceivingChecks(rawValue: 32_768)

    package static let all: ReceivingChecks = [
        .newFile, .freeName, .checksums, .shownName, .whole, .entryPaths, .beneath, .linksInside, .rule, .label,
        .folders, .linksLast, .room, .confined, .shortCopies, .copiesByRule,
    ]
}

/// What a kernel has to have before a document is received: without it a mistake of ours, or of the file system, would
/// write where another device likes.
enum NeededCall: CaseIterable {
    /// Opening beneath a folder and through no link, decided by the kernel.
    case openBeneath
    /// Confining the thread that writes.
    case landlock

    /// What it is called, and where it is to be had.
    var remedy: String {
        switch self {
        case .openBeneath: "openat2: update to Linux 5.6 or later, and let the container allow it"
        case .landlock: "Landlock: update to Linux 5.13 or later, and name landlock in the kernel's lsm= parameter"
        }
    }
}
