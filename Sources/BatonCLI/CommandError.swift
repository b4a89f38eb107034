// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonApplications
import BatonMessages
import BatonNode
import SystemPackage

/// The reason that a command failed: a sentence for people, a code for scripts, and a number for shells.
struct CommandError: Error, Sendable, CustomStringConvertible {
    let status: ExitStatus
    /// A stable name, which `--json` prints in `failed`.
    let code: String
    /// One sentence that says what is wrong and what to do. It is printed after `baton: `.
    let message: String

    /// - Parameter code: nil for the one of the status.
    init(_ status: ExitStatus, code: String? = nil, _ message: String) {
        self.status = status
        self.code = code ?? status.code
        self.message = message
    }

    var description: String { message }

    static func usage(_ message: String) -> CommandError {
        CommandError(.usage, message)
    }

    /// A failure that has no status of its own.
    static func failed(_ message: String) -> CommandError {
        CommandError(.failed, message)
    }

    static let interrupted = CommandError(.interrupted, "interrupted")
}

extension CommandError {
    /// Runs an operation on a configuration file, whose failures name the file.
    ///
    /// - Parameter consequence: what follows from a mistake in the file, after a semicolon; empty for nothing.
    static func naming<Result>(
        _ path: FilePath, consequence: String = "", _ body: @autoclosure () throws(ConfigurationError) -> Result
    ) throws(CommandError) -> Result {
        do {
            return try body()
        } catch {
            throw .usage("\(path.shown): \(SafeText.escaped("\(error)"))\(consequence)")
        }
    }

    /// The failure of an operation below, as the user is told of it; nil for an error of another kind, such as wrong
    /// usage.
    init?(translating error: any Error) {
        switch error {
        case let error as CommandError: self = error
        case let error as HandoffError: self.init(error)
        case let error as AccountError: self.init(error)
        case let error as PairingError: self.init(error)
        case let error as NodeError: self.init(error)
        case let error as RevocationError: self = .failed("\(error)")
        case let error as ApplicationManifestError: self = .failed(SafeText.escaped(error.description))
        case _: return nil
        }
    }

    /// The failure that the node or the other device answered with.
    init(_ error: HandoffError) {
        var message = SafeText.sentence(error.message)
        if error.code == .claimHeld, !error.device.isEmpty {
            message = "\(SafeText.sentence(error.device)) has it: " + message
        }
        if !error.advises, let advice = error.code.advice { message += "; " + advice }
        // A timeout that names no device is an application's. The devices can reach each other.
        let status = error.code == .timedOut && error.device.isEmpty ? ExitStatus.failed : error.code.status
        self.init(status, code: error.code.name, message)
    }
}

extension HandoffError.Code {
    var status: ExitStatus {
        switch self {
        case .noSuchActivity, .applicationGone: .noSuchActivity
        case .peerUnreachable, .connectionLost, .timedOut: .unreachable
        case .nodeStopping: .noNode
        case .refused, .claimHeld, .handoffOff, .accessRefused: .refused
        case .destinationExists, .destinationUnwritable, .destinationFull: .destination
        case .ambiguousActivity: .usage
        case .documentUnreadable, .documentChanged: .document
        case .unspecified, .internal, .unsupported, .invalidRequest, .noSuchClaim, .limitExceeded, .streamsUnsupported,
            .userInfoTooLarge, .corrupted, .cancelled, .versionUnreadable, .applicationNotStarted, .notHandled,
            .UNRECOGNIZED:
            .failed
        }
    }

    /// The stable name that `--json` prints: that of the case.
    var name: String {
        switch self {
        case .unspecified, .UNRECOGNIZED: "internal"
        case _: "\(self)"
        }
    }

    /// Advice for users of the command line; nil if there is none.
    var advice: String? {
        switch self {
        case .noSuchActivity, .applicationGone: "see what there is with `baton activities`"
        case .peerUnreachable: "find the cause with `baton doctor`"
        case .connectionLost: "accept it again: a document goes on from what has come"
        case .destinationExists: "choose another name with --name or --on-conflict rename, or another folder with --to"
        case .destinationUnwritable, .destinationFull: "name another folder with --to"
        case .streamsUnsupported: "accept it without --stream"
        case .documentChanged: "accept it again when it is no longer written to"
        case .corrupted: "accept it again"
        case .nodeStopping: "start `baton node` and do it again"
        case .handoffOff: "switch it on with `baton handoff on`"
        case .applicationNotStarted:
            "see how it is launched with `baton applications list --json`, or accept with --print"
        case .unspecified, .internal, .unsupported, .invalidRequest, .ambiguousActivity, .claimHeld, .noSuchClaim,
            .limitExceeded, .timedOut, .cancelled, .userInfoTooLarge, .documentUnreadable, .notHandled, .refused,
            .versionUnreadable, .accessRefused, .UNRECOGNIZED:
            nil
        }
    }
}
