// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonEventLoop
import BatonProtocol

import struct SystemPackage.FilePath

extension AcceptPolicy {
    /// Reads a policy: a rule a line, `ACTION NAME=VALUE ...`, and comments that begin with `#`.
    package init(parsing text: [UInt8]) throws(ConfigurationError) {
        let (policy, mistake) = Self.parse(text)
        if let mistake { throw mistake }
        self = policy
    }

    /// Reads the lines of a policy that can be read.
    ///
    /// - Returns: their rules, and the first mistake.
    static func parse(_ text: [UInt8]) -> (policy: AcceptPolicy, mistake: ConfigurationError?) {
        var rules: [Rule] = []
        let mistake = ConfigurationFile.mistake(in: text) { (line, text) throws(ConfigurationError) in
            let rule = try Rule(parsing: text, line: line)
            guard rules.count < ruleBound else { throw ConfigurationError("there are over \(ruleBound) rules") }
            rules.append(rule)
        }
        return (AcceptPolicy(rules: rules), mistake)
    }

    /// Whether a text is a device's identifier rather than a name.
    static func isDeviceID(_ text: String) -> Bool { DeviceID(text.lowercased()) != nil }
}

extension AcceptPolicy.Rule {
    private static let names = ["device", "type", "max", "network", "to", "on-conflict"]

    fileprivate init(parsing text: String, line: Int) throws(ConfigurationError) {
        let words = try Self.words(of: text)
        guard let action = AcceptPolicy.Action(rawValue: words[0]) else {
            throw ConfigurationError("a rule begins with accept, ask or refuse, not with \"\(words[0])\"")
        }
        self.init(line: line, action: action)
        var seen: Set<String> = []
        var written: [String] = []
        for word in words.dropFirst() {
            guard let equals = word.firstIndex(of: "=") else {
                throw ConfigurationError(
                    "NAME=VALUE was expected, not \"\(word)\"; a value with spaces stands in quotes")
            }
            let (name, value) = (String(word[..<equals]), String(word[word.index(after: equals)...]))
            guard Self.names.contains(name) else {
                throw ConfigurationError(
                    "there is no condition \"\(name)\": use \(Self.names.joined(separator: ", "))")
            }
            guard seen.insert(name).inserted else { throw ConfigurationError("\(name) is there twice") }
            guard !value.isEmpty else { throw ConfigurationError("\(name) has no value; * matches everything") }
            try set(name, value)
            written.append(value.contains { " \t".contains($0) } ? "\(name)=\"\(value)\"" : word)
        }
        if action == .accept, destination == nil {
            throw ConfigurationError("accept needs a folder for what it takes: to=FOLDER")
        }
        conditions = written.joined(separator: " ")
    }

    private mutating func set(_ name: String, _ value: String) throws(ConfigurationError) {
        if name == "to" || name == "on-conflict" {
            guard action == .accept else {
                let condition = name == "to" ? "to=FOLDER" : name
                throw ConfigurationError("\(condition) is for accept; \(action.rawValue) writes nothing")
            }
        } else if value == "*" {
            return
        }
        switch name {
        case "to": destination = try FilePath(configured: value)
        case "on-conflict":
            guard ["rename", "fail"].contains(value) else {
                throw ConfigurationError("on-conflict is rename or fail, not \"\(value)\"")
            }
            renames = value == "rename"
        case "device": device = value
        case "type": type = value
        case "max":
            maximumSize = Self.size(value)
            guard maximumSize != nil else {
                throw ConfigurationError("\"\(value)\" is no size: write 500, 100KB, 20MB, 1.5GB or 4GiB")
            }
        case _:
            network = Self.network(value)
            guard network != nil else {
                throw ConfigurationError(
                    "\"\(value)\" is no network: write an interface (eth0) or addresses (192.168.1.0/24)")
            }
        }
    }

    /// The words up to a comment, without their quotes.
    private static func words(of text: String) throws(ConfigurationError) -> [String] {
        var words: [String] = []
        var word: String?
        var isQuoted = false
        for scalar in text.unicodeScalars {
            if word == nil, scalar == "#" { break }
            if !isQuoted, scalar == " " || scalar == "\t" {
                words += [word].compactMap { $0 }
                word = nil
            } else if scalar == "\"" {
                isQuoted.toggle()
                word = word ?? ""
            } else {
                word = (word ?? "") + String(scalar)
            }
        }
        guard !isQuoted else { throw ConfigurationError("a quotation mark is never closed") }
        return words + [word].compactMap { $0 }
    }

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
