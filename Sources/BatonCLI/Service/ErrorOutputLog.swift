// SPDX-License-Identifier: Apache-2.0

import Logging

/// The log of a command that runs for long: one line for each entry, on standard error. The journal adds the time.
struct ErrorOutputLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    private let name: String

    /// - Parameter name: the name of the command. Each line begins with it.
    init(level: Logger.Level, name: String) {
        logLevel = level
        self.name = name
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { Output.say(line(of: event)) }

    /// One entry as a line. It may contain names from other devices, so it is escaped.
    func line(of event: LogEvent) -> String {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        return "\(name): \(event.level): " + SafeText.escaped("\(event.message)\(details)")
    }
}
