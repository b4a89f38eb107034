// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

/// Whether an attack meets a limit, or a value that limits nothing.
enum Defence: Sendable {
    case on, off

    var isOn: Bool {
        switch self {
        case .on: true
        case .off: false
        }
    }
}

/// How an attack ended.
enum Outcome: Sendable, Hashable {
    case refused, succeeded

    init(succeeds: Bool) {
        self = succeeds ? .succeeded : .refused
    }
}

/// Tries an attack, which has to be refused.
///
/// - Parameters:
///   - name: what is attacked how, for the report.
///   - attempt: plays both sides, and says how it ended. It throws only when something else went wrong.
func attack(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation, _ attempt: () async throws -> Outcome
) async rethrows {
    AttackReport.shared.begin()
    let met = try await attempt()
    #expect(met == .refused, "the attack is not refused: \(name)", sourceLocation: sourceLocation)
    AttackReport.shared.end(name, isRefused: met == .refused)
}

/// Tries an attack on a limit twice. With the limit it has to be refused, and without the limit it has to succeed.
func attack(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ attempt: (Defence) async throws -> Outcome
) async rethrows {
    AttackReport.shared.begin()
    let met = try await attempt(.on)
    #expect(met == .refused, "the attack is not refused: \(name)", sourceLocation: sourceLocation)
    let unmet = try await attempt(.off)
    #expect(
        unmet == .succeeded, "the attack does not even succeed without the limit: \(name)",
        sourceLocation: sourceLocation)
    AttackReport.shared.end(name, isRefused: met == .refused, isProven: unmet == .succeeded, control: .limit)
}

/// Tries an attack that has to be refused, and to succeed against a stand-in that has the weakness.
///
/// - Parameters:
///   - name: what is attacked how, for the report.
///   - attempt: tries it against the real thing, and says how it ended.
///   - standIn: tries the same against the stand-in.
func attack(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation, _ attempt: () async throws -> Outcome,
    against standIn: () async throws -> Outcome
) async rethrows {
    AttackReport.shared.begin()
    let met = try await attempt()
    #expect(met == .refused, "the attack is not refused: \(name)", sourceLocation: sourceLocation)
    let unmet = try await standIn()
    #expect(
        unmet == .succeeded, "the attack does not even succeed against a stand-in: \(name)",
        sourceLocation: sourceLocation)
    AttackReport.shared.end(name, isRefused: met == .refused, isProven: unmet == .succeeded, control: .standIn)
}

/// Counts the attacks of this process, and says at its end what became of them.
final class AttackReport: Sendable {
    static let shared = AttackReport()

    /// How it is shown that the test can fail.
    enum Control {
        case mutation, limit, standIn
    }

    private struct Counts {
        var begun = 0
        var refused = 0
        /// The attacks that succeed without a limit.
        var unlimited = 0
        /// The attacks that succeed against a stand-in.
        var apart = 0
        var missed: [String] = []
    }

    private let counts = Mutex(Counts())

    private init() {
        atexit { AttackReport.shared.say() }
    }

    func begin() {
        counts.withLock { $0.begun += 1 }
    }

    func end(_ name: String, isRefused: Bool, isProven: Bool = true, control: Control = .mutation) {
        counts.withLock { counts in
            counts.refused += isRefused ? 1 : 0
            switch control {
            case .mutation: break
            case .limit: counts.unlimited += isProven ? 1 : 0
            case .standIn: counts.apart += isProven ? 1 : 0
            }
            if !isRefused || !isProven { counts.missed.append(name) }
        }
    }

    private func say() {
        let counts = counts.withLock { $0 }
        // Scripts/rooms adds up what the processes say.
        var text = "attacks: \(counts.begun) tried, \(counts.refused) refused, \(counts.unlimited) without a limit"
        text += ", \(counts.apart) against a stand-in\n"
        for name in counts.missed { text += "attacks: NOT AS IT SHOULD BE: \(name)\n" }
        let bytes = Array(text.utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}
