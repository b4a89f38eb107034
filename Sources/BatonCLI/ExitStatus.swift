// SPDX-License-Identifier: Apache-2.0

/// The exit statuses of `baton`. The numbers are those of sysexits.h where one fits. They never change.
enum ExitStatus: Int32, CaseIterable, Sendable {
    case success = 0
    /// Any failure without a number of its own.
    case failed = 1
    /// `EX_USAGE`.
    case usage = 64
    /// `EX_DATAERR`.
    case document = 65
    /// `EX_NOINPUT`.
    case noSuchActivity = 66
    /// `EX_NOHOST`.
    case unreachable = 68
    /// `EX_UNAVAILABLE`.
    case noNode = 69
    /// `EX_CANTCREAT`.
    case destination = 73
    /// `EX_TEMPFAIL`.
    case alreadyRunning = 75
    /// `EX_NOPERM`.
    case refused = 77
    /// `EX_CONFIG`.
    case account = 78
    /// Behind the numbers of sysexits.h.
    case notMeasured = 79
    /// 128 + SIGINT, as in a shell.
    case interrupted = 130

    /// The name of a failure with this status in `--json`, if it has none of its own.
    var code: String {
        switch self {
        case .document: "documentUnreadable"
        case .unreachable: "connectionLost"
        case .destination: "destinationUnwritable"
        case .interrupted: "cancelled"
        case .success, .failed, .usage, .noSuchActivity, .noNode, .alreadyRunning, .refused, .account, .notMeasured:
            "\(self)"
        }
    }

    var meaning: String {
        switch self {
        case .success: "success; also when `offer` or `node` is told to stop"
        case .failed: "any other failure"
        case .usage: "wrong usage, or bad input such as a mistyped account key"
        case .document: "the document is missing, unreadable, or changed while it was sent"
        case .noSuchActivity: "no such activity, or none came in time"
        case .unreachable: "the other device cannot be reached, or the link to it broke"
        case .noNode: "no node is running here"
        case .destination: "the destination is not writable, is full, or has the file already"
        case .alreadyRunning: "a node is running here already"
        case .account: "no account here, or one that cannot be used"
        case .notMeasured: "`doctor` found no problem, but could not measure everything"
        case .refused: "refused: another account, a revoked device, taken elsewhere, your policy"
        case .interrupted: "interrupted"
        }
    }

    static var table: String {
        allCases.map { status in
            let number = String(status.rawValue)
            return "  " + String(repeating: " ", count: 3 - number.count) + number + "  " + status.meaning
        }.joined(separator: "\n")
    }
}
