// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop

import BatonProtocol
package import struct SystemPackage.FilePath

extension AcceptPolicy {
    /// Reads a policy: a rule a line, `ACTION NAME=VALUE ...`, and comments that begin with `#`.
    ///
    /// - Parameters:
    ///   - text: the file.
    ///   - home: the folder that `~/` in `to=` stands for; nil if nobody knows.
    package init(parsing text: [UInt8], home: FilePath?) throws(ConfigurationError) {
        let (policy, mistake) = Self.parse(text, home: home)
        if let mistake { throw mistake }
        self = policy
    }

    /// Reads the lines of a policy that can be read.
    ///
    /// - Returns: their rules, and the first mistake.
    static func parse(_ text: [UInt8], home: FilePath?) -> (policy: AcceptPolicy, mistake: ConfigurationError?) {
        var rules: [Rule] = []
        var mistake: ConfigurationError?
        for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(ConfigurationError) {
                var parser = RuleParser(line: index + 1, rest: Array(line), home: home)
                guard let rule = try parser.parse() else { continue }
                guard rules.count < ruleBound else { throw parser.error(at: 0, "there are over \(ruleBound) rules") }
                rules.append(rule)
            } catch {
                mistake = mistake ?? error
            }
        }
        return (AcceptPolicy(rules: rules), mistake)
    }

    /// Whether a text is a device's identifier rather than a name.
    static func isDeviceID(_ text: String) -> Bool { DeviceID(text.lowercased()) != nil }
}

/// One line of a policy.
private struct RuleParser {
    private static let conditions = ["device", "type", "max", "network", "to", "on-conflict"]

    let line: Int
    let bytes: [UInt8]
    let home: FilePath?
    private var position = 0

    init(line: Int, rest: [UInt8], home: FilePath?) {
        self.line = line
        self.home = home
        // Files that were written elsewhere end their lines with CR LF.
        bytes = rest.last == 0x0D ? rest.dropLast() : rest
    }

    /// - Returns: nil for an empty line.
    mutating func parse() throws(ConfigurationError) -> AcceptPolicy.Rule? {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw error(at: 0, "it is not UTF-8") }
        guard let (word, start) = try nextWord() else { return nil }
        guard let action = AcceptPolicy.Action(rawValue: word) else {
            throw error(at: start, "a rule begins with accept, ask or refuse, not with \"\(word)\"")
        }
        var rule = AcceptPolicy.Rule(line: line, action: action)
        var seen: Set<String> = []
        var written: [String] = []
        while let (word, start) = try nextWord() {
            guard let equals = word.firstIndex(of: "=") else {
                throw error(at: start, "NAME=VALUE was expected, not \"\(word)\"; a value with spaces stands in quotes")
            }
            let (name, value) = (String(word[..<equals]), String(word[word.index(after: equals)...]))
            guard Self.conditions.contains(name) else {
                throw error(
                    at: start, "there is no condition \"\(name)\": use \(Self.conditions.joined(separator: ", "))")
            }
            guard seen.insert(name).inserted else { throw error(at: start, "\(name) is there twice") }
            guard !value.isEmpty else { throw error(at: start, "\(name) has no value; * matches everything") }
            try set(name, value, of: &rule, at: start)
            written.append(value.contains(" ") || value.contains("\t") ? "\(name)=\"\(value)\"" : "\(name)=\(value)")
        }
        if action == .accept, rule.destination == nil {
            throw error(at: start, "accept needs a folder for what it takes: to=FOLDER")
        }
        rule.conditions = written.joined(separator: " ")
        return rule
    }

    private func set(
        _ name: String, _ value: String, of rule: inout AcceptPolicy.Rule, at start: Int
    ) throws(ConfigurationError) {
        if name == "to" || name == "on-conflict" {
            guard rule.action == .accept else {
                let condition = name == "to" ? "to=FOLDER" : name
                throw error(at: start, "\(condition) is for accept; \(rule.action.rawValue) writes nothing")
            }
        } else if value == "*" {
            return
        }
        switch name {
        case "to": rule.destination = try FilePath(configured: value, home: home, line: line, column: start + 1)
        case "on-conflict":
            guard ["rename", "fail"].contains(value) else {
                throw error(at: start, "on-conflict is rename or fail, not \"\(value)\"")
            }
            rule.renames = value == "rename"
        case "device": rule.device = value
        case "type": rule.type = value
        case "max":
            guard let size = Self.size(value) else {
                throw error(at: start, "\"\(value)\" is no size: write 500, 100KB, 20MB, 1.5GB or 4GiB")
            }
            rule.maximumSize = size
        case _:
            guard let network = Self.network(value) else {
                throw error(
                    at: start, "\"\(value)\" is no network: write an interface (eth0) or addresses (192.168.1.0/24)")
            }
            rule.network = network
        }
    }

    // MARK: Words

    /// Reads the next word without its quotes.
    ///
    /// - Returns: the word and its position; nil at the end or at a comment.
    private mutating func nextWord() throws(ConfigurationError) -> (String, Int)? {
        while position < bytes.count, isSpace(bytes[position]) { position += 1 }
        let start = position
        guard position < bytes.count, bytes[position] != UInt8(ascii: "#") else { return nil }
        var word: [UInt8] = []
        var isQuoted = false
        while position < bytes.count, isQuoted || !isSpace(bytes[position]) {
            let byte = bytes[position]
            guard byte >= 0x20 && byte != 0x7F || byte == 0x09 else {
                throw error(at: position, "there is a control character")
            }
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() } else { word.append(byte) }
            position += 1
        }
        guard !isQuoted else { throw error(at: start, "a quotation mark is never closed") }
        return (String(decoding: word, as: UTF8.self), start)
    }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    func error(at position: Int, _ problem: String) -> ConfigurationError {
        ConfigurationError(line: line, column: position + 1, problem: problem)
    }

    // MARK: Values

    private static let units: [String: UInt64] = [
        "": 1, "B": 1, "K": 1000, "KB": 1000, "M": 1_000_000, "MB": 1_000_000, "G": 1_000_000_000, "GB": 1_000_000_000,
        "T": 1_000_000_000_000, "TB": 1_000_000_000_000, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
        "TIB": 1 << 40,
    ]

    /// The bytes of a size in decimal units (KB is 1000 bytes) or binary ones (KiB is 1024), with at most three digits
    /// behind the point.
    private static func size(_ text: String) -> UInt64? {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = text.dropFirst(number.count).filter { $0 != " " }.uppercased()
        let parts = number.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let whole = UInt64(parts[0]) else { return nil }
        var thousandths: UInt64 = 0
        if parts.count == 2 {
            guard (1...3).contains(parts[1].count), let value = UInt64(parts[1]) else { return nil }
            thousandths = value * [100, 10, 1][parts[1].count - 1]
        }
        guard let multiplier = units[unit] else { return nil }
        let (bytes, overflow) = whole.multipliedReportingOverflow(by: multiplier)
        let (sum, excess) = bytes.addingReportingOverflow(multiplier * thousandths / 1000)
        return overflow || excess ? nil : sum
    }

    private static func network(_ text: String) -> AcceptPolicy.Network? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        if parts.count <= 2, let first = parts.first, let address = IPAddress(first) {
            let bits = address.bytes.count * 8
            guard parts.count == 2 else { return .addresses(address, length: bits) }
            guard let length = Int(parts[1]), (0...bits).contains(length) else { return nil }
            return .addresses(address, length: length)
        }
        // IFNAMSIZ is 16 with its terminating zero; a name has neither slash nor space (dev_valid_name in the kernel).
        guard (1...15).contains(text.utf8.count), !text.contains("/"), !text.contains(" "), !text.contains(":") else {
            return nil
        }
        return .interface(text)
    }
}
