// SPDX-License-Identifier: Apache-2.0

import BatonApplications
package import BatonCore
import BatonEventLoop
import BatonMessages
package import BatonTransport
import Logging
package import SystemPackage

extension HandoffSwitch {
    /// Refuses an accept while Handoff is off.
    func requireOn(for application: String = "") throws(HandoffError) {
        if let problem { throw HandoffError(.handoffOff, "Handoff is off, because \(problem)") }
        guard isOn else { throw HandoffError(.handoffOff, "Handoff is switched off on this device") }
        guard isOn(for: application) else {
            throw HandoffError(
                .handoffOff,
                "Handoff is switched off for \(application): switch it on with `baton handoff on --application"
                    + " \(application)`", advises: true)
        }
    }
}

/// Keeps the switch in a file of the configuration folder: a line `on` or `off`, and a line `off IDENTIFIER` for each
/// application.
///
/// A device on which nobody has used the switch has no file, and Handoff is on. From the first use on a marker in the
/// state folder says that there is a file. From then on, a file that is missing or empty, has another line, or is one
/// that ``ConfigurationFile`` does not read means off, with a warning. The user may have switched it off. A file of an
/// earlier version has no line `on`. The storage thread writes it.
@StorageThread
final class HandoffSwitchKeeper {
    private let path: FilePath
    private let marker: FilePath
    private nonisolated let state: Lock<HandoffSwitch>

    /// Reads the file; blocks.
    ///
    /// - Parameter marker: the file that says that there is one at `path`.
    nonisolated init(path: FilePath, marker: FilePath, logger: Logger) {
        self.path = path
        self.marker = marker
        // An earlier version has written the file without a marker.
        if (try? path.stat()) != nil { try? Self.write(marker: marker) }
        let state = HandoffSwitch(reading: path, marker: marker)
        if let problem = state.problem { logger.warning("Handoff is off, because \(problem)") }
        self.state = Lock(state)
    }

    /// The switch as the user left it. Callable from anywhere.
    nonisolated var current: HandoffSwitch { state.withLock { $0 } }

    /// Switches, for the device or for one application, and writes it down.
    func set(_ isOn: Bool, for application: String) throws(HandoffError) -> HandoffSwitch {
        var changed = current
        if application.isEmpty {
            changed.isOn = isOn
            changed.problem = nil
        } else if isOn {
            changed.offApplications.remove(application)
        } else {
            guard changed.offApplications.count < HandoffSwitch.bound else {
                throw HandoffError(.limitExceeded, "\(HandoffSwitch.bound) applications are switched off already")
            }
            guard DottedName.isIdentifier(application) else {
                throw HandoffError(
                    .invalidRequest, "“\(application)” is no application's identifier, such as org.example.editor")
            }
            changed.offApplications.insert(application)
        }
        do throws(Errno) {
            try write(changed)
        } catch {
            throw HandoffError(.internal, "the choice cannot be kept: \(path) cannot be written: \(error)")
        }
        state.withLock { $0 = changed }
        return changed
    }

    private func write(_ state: HandoffSwitch) throws(Errno) {
        let lines = [state.isOn ? "on" : "off"] + state.offApplications.sorted().map { "off \($0)" }
        // First: after a crash between the two it is off.
        try Self.write(marker: marker)
        try DurableFile.replace(path, with: Array(lines.map { $0 + "\n" }.joined().utf8))
    }

    /// Notes that there is a file from now on.
    private nonisolated static func write(marker: FilePath) throws(Errno) {
        guard (try? marker.stat()) == nil else { return }
        try DurableFile.replace(marker, with: [])
    }
}

extension HandoffSwitch {
    /// The file that keeps the switch.
    package static func path(in home: Home) -> FilePath { FilePath(home.configurationFolder).appending("handoff") }

    /// The marker that says that there is a file.
    package static func marker(in home: Home) -> FilePath { FilePath(home.stateFolder).appending("handoff-switched") }

    /// Reads the switch as the user left it; blocks.
    package init(reading path: FilePath, marker: FilePath) {
        self.init()
        do throws(ConfigurationError) {
            guard let content = try ConfigurationFile.contents(of: path) else {
                guard (try? marker.stat()) == nil else {
                    throw ConfigurationError("it is missing, which it was not before")
                }
                return
            }
            var isEmpty = true
            let mistake = ConfigurationFile.mistake(in: content) { (_, line) throws(ConfigurationError) in
                isEmpty = false
                try parse(line)
            }
            if let mistake { throw mistake }
            if isEmpty { throw ConfigurationError("it is empty") }
        } catch {
            problem = "\(path): \(error)"
            isOn = false
        }
    }

    private mutating func parse(_ line: String) throws(ConfigurationError) {
        let words = line.split(whereSeparator: \.isWhitespace)
        if words == ["off"] {
            // It counts wherever it stands.
            isOn = false
        } else if words.count == 2, words[0] == "off", offApplications.count < Self.bound {
            offApplications.insert(String(words[1]))
        } else if words != ["on"] {
            throw ConfigurationError("“on”, “off” or “off IDENTIFIER” was expected")
        }
    }
}
