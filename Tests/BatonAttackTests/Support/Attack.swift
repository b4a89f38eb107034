// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

/// Whether the defence that an attack meets stands, or was switched off for the proof that the attack is one.
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

/// Tries an attack twice. Against its defence it has to be refused, and with that one defence switched off it has to
/// succeed, because a test that cannot fail proves nothing.
///
/// - Parameters:
///   - name: what is attacked how, for the report.
///   - attempt: plays both sides, and says how it ended. It throws only when something else went wrong.
func attack(
    _ name: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ attempt: (Defence) async throws -> Outcome
) async rethrows {
    AttackReport.shared.begin()
    let met = try await attempt(.on)
    #expect(met == .refused, "the attack is not refused: \(name)", sourceLocation: sourceLocation)
    let unmet = try await attempt(.off)
    #expect(
        unmet == .succeeded, "the attack does not even succeed without its defence: \(name)",
        sourceLocation: sourceLocation)
    AttackReport.shared.end(name, isRefused: met == .refused, isProven: unmet == .succeeded)
}

/// Tries an attack on something that no code here has, so that there is no defence to switch off. It has to be refused,
/// and to succeed against a stand-in that has the weakness. The report counts it apart.
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
    AttackReport.shared.end(name, isRefused: met == .refused, isProven: unmet == .succeeded, hasDefence: false)
}

/// Counts the attacks of this process, and says at its end what became of them.
final class AttackReport: Sendable {
    static let shared = AttackReport()

    private struct Counts {
        var begun = 0
        var refused = 0
        var proven = 0
        /// The attacks that succeed against a stand-in, because there is nothing to switch off.
        var provenApart = 0
        var missed: [String] = []
    }

    private let counts = Mutex(Counts())

    private init() {
        atexit { AttackReport.shared.say() }
    }

    func begin() {
        counts.withLock { $0.begun += 1 }
    }

    func end(_ name: String, isRefused: Bool, isProven: Bool, hasDefence: Bool = true) {
        counts.withLock { counts in
            counts.refused += isRefused ? 1 : 0
            counts.proven += isProven && hasDefence ? 1 : 0
            counts.provenApart += isProven && !hasDefence ? 1 : 0
            if !isRefused || !isProven { counts.missed.append(name) }
        }
    }

    private func say() {
        let counts = counts.withLock { $0 }
        // Scripts/rooms adds up what the processes say.
        var text = "attacks: \(counts.begun) tried, \(counts.refused) refused, \(counts.proven) proven"
        text += ", \(counts.provenApart) against a stand-in\n"
        for name in counts.missed { text += "attacks: NOT AS IT SHOULD BE: \(name)\n" }
        let bytes = Array(text.utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}
