// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonNode

enum FindingRendering {
    /// The column in which sentences begin.
    private static let indentation = String(repeating: " ", count: 16)

    /// The lines of the report, group by group. What is fine in a group shares a line, unless it is verbose.
    ///
    /// - Parameter device: the name of the device whose road is examined.
    static func lines(
        _ findings: [Finding], about device: String? = nil, isVerbose: Bool, width: Int
    ) -> [String] {
        Check.Group.allCases.flatMap { group -> [String] in
            let findings = findings.filter { $0.check.group == group }
            guard !findings.isEmpty else { return [] }
            let fine = findings.filter { $0.result == .fine }
            let subjects = fine.map(\.check.subject).joined(separator: ", ")
            let shared = isVerbose || fine.isEmpty ? [] : entry("fine", subjects, width: width)
            let others = findings.filter { $0.result == .fine ? isVerbose : $0.result != .notMeasured }
            return [group.title(device)] + shared + others.flatMap { entry($0, width: width) }
                + unmeasured(findings, width: width)
        }
    }

    /// Checks that were not made for the same reason share a line.
    private static func unmeasured(_ findings: [Finding], width: Int) -> [String] {
        let findings = findings.filter { $0.result == .notMeasured }
        var reasons: [String] = []
        for finding in findings where !reasons.contains(finding.sentence) { reasons.append(finding.sentence) }
        return reasons.flatMap { reason in
            let subjects = findings.filter { $0.sentence == reason }.map(\.check.subject)
            return entry("not measured", subjects.joined(separator: ", ") + ": " + reason, width: width)
        }
    }

    private static func entry(_ finding: Finding, width: Int) -> [String] {
        let evidence = finding.evidence.flatMap { TextWrap.lines(indentation + SafeText.escaped($0), width: width) }
        let remedy = finding.remedy.flatMap { step -> [String] in
            // A command is not broken, so that it can be copied.
            step.hasPrefix("# ")
                ? TextWrap.lines(indentation + SafeText.escaped(step.dropFirst(2)), width: width)
                : [indentation + "$ " + SafeText.escaped(step)]
        }
        return entry(finding.result.name, finding.sentence, width: width) + evidence + remedy
    }

    private static func entry(_ word: String, _ sentence: String, width: Int) -> [String] {
        var lines = TextWrap.lines(indentation + SafeText.escaped(sentence), width: width)
        lines[0] = ("  " + word).padded(to: indentation.count) + lines[0].dropFirst(indentation.count)
        return lines
    }

    static func json(_ finding: Finding) -> String {
        var members: [JSONMember] = [
            .text("check", finding.check.rawValue), .text("group", finding.check.group.rawValue),
            .text("result", finding.result.name),
        ]
        if case .problem(let cause) = finding.result { members.append(.text("cause", cause.rawValue)) }
        members += [
            .text("sentence", finding.sentence), .texts("evidence", finding.evidence),
            .texts("remedy", finding.remedy),
        ]
        return members.line
    }

    static func jsonSummary(_ findings: [Finding]) -> String {
        let (problems, unmeasured) = counts(findings)
        return [.count("problems", problems), .count("notMeasured", unmeasured)].line
    }

    /// The end of the command; nil if all is fine.
    static func error(_ findings: [Finding]) -> CommandError? {
        let (problems, unmeasured) = counts(findings)
        let rest = unmeasured == 0 ? "" : ", \(unmeasured) not measured"
        if problems > 0 {
            return CommandError.failed("\(problems) \(problems == 1 ? "problem" : "problems")\(rest)")
        }
        return unmeasured == 0 ? nil : CommandError(.notMeasured, "no problem\(rest)")
    }

    private static func counts(_ findings: [Finding]) -> (problems: Int, unmeasured: Int) {
        let unmeasured = findings.count { $0.result == .notMeasured }
        return (findings.count { $0.result != .fine } - unmeasured, unmeasured)
    }
}

extension String {
    /// The text with spaces after it, up to a count of characters.
    fileprivate func padded(to count: Int) -> String {
        self + String(repeating: " ", count: Swift.max(0, count - self.count))
    }
}
