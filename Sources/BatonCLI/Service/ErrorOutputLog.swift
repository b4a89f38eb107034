// SPDX-License-Identifier: Apache-2.0

import Logging

/// The log of a command that runs for long: one line an entry, on standard error. The journal adds the time; so do
/// terminals that want it.
struct ErrorOutputLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    private let name: String

    /// - Parameter name: of the command; each line begins with it.
    init(level: Logger.Level, name: String) {
        logLevel = level
        self.name = name
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { Output.say(line(of: event)) }

    /// An entry, safe to show: names that other devices gave are in it.
    func line(of event: LogEvent) -> String {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        return "\(name): \(event.level): " + SafeText.escaped("\(event.message)\(details)")
    }
}
