// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol
package import BatonTransport
package import SystemPackage

/// The settings of the node that the user, or `baton node install`, writes: the file `node` in the configuration
/// folder.
///
/// The file has one line `port=PORT`, and comments that begin with `#`. The node reads it when it starts.
package struct NodeSettings: Sendable, Hashable {
    /// The ports that a user may choose: 1024 to 65535. No device dials a port below that.
    package static let ports = Advertisement.minimumPort...UInt16.max

    /// The TCP port for other devices. Without one, the default, the node takes any free port, and another one every 15
    /// minutes.
    package private(set) var port: UInt16?
    /// The line of the port, from 1; 0 if there is none.
    private var line = 0

    package static func path(in home: Home) -> FilePath {
        FilePath(home.configurationFolder).appending("node")
    }

    /// Reads the file. Blocks.
    ///
    /// - Returns: the defaults if there is no file.
    /// - Throws: what is wrong with the file. It must belong to this user (or root), and nobody else may write to it.
    package static func read(_ path: FilePath) throws(ConfigurationError) -> NodeSettings {
        try NodeSettings(parsing: ConfigurationFile.contents(of: path) ?? [])
    }

    /// Writes the port into the file, and keeps everything else in it. Blocks.
    ///
    /// - Parameter port: one of ``ports``.
    /// - Throws: what is wrong with the file, or why it cannot be written.
    package static func setPort(_ port: UInt16, in path: FilePath) throws(ConfigurationError) {
        guard try read(path).port != port else { return }
        try ConfigurationFile.edit(path) { (content) throws(ConfigurationError) in
            let line = try NodeSettings(parsing: content).line
            var lines = content.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
            if lines.last?.isEmpty == true { lines.removeLast() }
            let setting = Array("port=\(port)".utf8)
            if line > 0 { lines[line - 1] = setting } else { lines.append(setting) }
            return Array(lines.map { $0 + [0x0A] }.joined())
        }
    }

    package init(parsing content: [UInt8]) throws(ConfigurationError) {
        let mistake = ConfigurationFile.mistake(in: content) { (line, text) throws(ConfigurationError) in
            let words = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
            guard words.count == 2, words[0] == "port" else {
                throw ConfigurationError("port=PORT was expected, as in port=24747")
            }
            guard self.line == 0 else { throw ConfigurationError("the port is there already, in line \(self.line)") }
            guard let port = UInt16(words[1]), Self.ports.contains(port) else {
                throw ConfigurationError(
                    "the port must be a number from \(Self.ports.lowerBound) to \(Self.ports.upperBound)")
            }
            (self.port, self.line) = (port, line)
        }
        if let mistake { throw mistake }
    }
}
