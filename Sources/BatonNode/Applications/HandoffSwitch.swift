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
/// state folder says that there is a file. From then on, a file that is missing, empty, unreadable, over 128 KiB or has
/// another line means off, with a warning. The user may have switched it off. A file of an earlier version has
/// no line `on`. The storage thread writes it.
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
            guard application.utf8.count <= 255, application.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw HandoffError(
                    .invalidRequest, "an application's identifier has no spaces, as in org.example.editor")
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
    /// The most bytes of the file: more than what ``bound`` applications take.
    private static let sizeBound = 128 << 10

    /// The file that keeps the switch.
    package static func path(in home: Home) -> FilePath { FilePath(home.configurationFolder).appending("handoff") }

    /// The marker that says that there is a file.
    package static func marker(in home: Home) -> FilePath { FilePath(home.stateFolder).appending("handoff-switched") }

    /// Reads the switch as the user left it; blocks.
    package init(reading path: FilePath, marker: FilePath) {
        self.init()
        do throws(Errno) {
            let content = try DurableFile.read(path, limit: Self.sizeBound)
            let text = String(decoding: content, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() where !parse(line) {
                problem = "line \(index + 1) of \(path) is neither “on”, “off” nor “off IDENTIFIER”"
                break
            }
            if lines.allSatisfy({ $0.allSatisfy(\.isWhitespace) }) { problem = "\(path) is empty" }
        } catch .noSuchFileOrDirectory {
            if (try? marker.stat()) != nil { problem = "\(path) is missing, which it was not before" }
        } catch {
            problem = "\(path) cannot be read: \(error == .invalidArgument ? "it is no file" : "\(error)")"
        }
        if problem != nil { isOn = false }
    }

    /// Takes in a line of the file.
    ///
    /// - Returns: whether it is a line of ours.
    private mutating func parse(_ line: Substring) -> Bool {
        let words = line.split(whereSeparator: \.isWhitespace)
        switch words.count {
        case 0: return true
        // “off” counts wherever it stands.
        case 1 where words[0] == "on": return true
        case 1 where words[0] == "off":
            isOn = false
            return true
        case 2 where words[0] == "off" && offApplications.count < Self.bound:
            offApplications.insert(String(words[1]))
            return true
        case _: return false
        }
    }
}
