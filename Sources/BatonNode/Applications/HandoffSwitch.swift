// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages
import Glibc
import Logging
import SystemPackage

/// Whether the user wants Handoff at all, and for which applications not.
///
/// What is off for the device is neither announced nor listed nor handed over, in both directions. Of an application
/// that is off nothing is announced, nothing is handed over to it or by it, and what only such applications here would
/// continue is not listed.
struct HandoffSwitch: Sendable, Hashable {
    /// Applications that may be switched off; one more is refused.
    static let bound = 256

    /// Of the device as a whole.
    var isOn = true
    /// The identifiers of applications for which it is off.
    var offApplications: Set<String> = []
    /// What is wrong with the file that keeps it, for people: what the user chose is not known then, so that it is off.
    /// `nil` where nothing is.
    var problem: String?

    /// Whether an application's activities are handed over.
    ///
    /// - Parameter application: its identifier; empty for what a command offers or accepts.
    func isOn(for application: String) -> Bool {
        isOn && !offApplications.contains(application)
    }

    /// What a user is told who accepts while it is off.
    func requireOn(for application: String = "") throws(HandoffError) {
        if let problem { throw HandoffError(.handoffOff, "Handoff is off, because \(problem)") }
        guard isOn else { throw HandoffError(.handoffOff, "Handoff is switched off on this device") }
        guard isOn(for: application) else {
            throw HandoffError(
                .handoffOff,
                "Handoff is switched off for \(application): switch it on with `baton handoff on --application"
                    + " \(application)`.")
        }
    }
}

/// Keeps the switch in a file of the configuration folder: a line `off`, and a line `off IDENTIFIER` for each
/// application. No file means on.
///
/// A file that cannot be read, is over 128 KiB, or has another line means off, with a warning: nothing leaves a device
/// whose user may have switched it off. It lives on the node's storage thread.
actor HandoffSwitchKeeper {
    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The most bytes of the file: more than what ``HandoffSwitch/bound`` applications take.
    private static let sizeBound = 128 << 10

    private let path: String
    private let logger: Logger
    /// Nil until the file was read.
    private nonisolated let state = Lock<HandoffSwitch?>(nil)

    init(path: String, on executor: BlockingExecutor, logger: Logger) {
        self.path = path
        self.executor = executor
        self.logger = logger
    }

    /// The switch as the user left it. Waits for the storage thread the first time alone.
    nonisolated(nonsending) var current: HandoffSwitch {
        get async {
            if let state = state.withLock({ $0 }) { return state }
            return await loaded()
        }
    }

    private func loaded() -> HandoffSwitch {
        if let state = state.withLock({ $0 }) { return state }
        let state = load()
        self.state.withLock { $0 = state }
        if let problem = state.problem { logger.warning("Handoff is off, because \(problem)") }
        return state
    }

    /// Switches, for the device or for one application, and writes it down.
    func set(_ isOn: Bool, for application: String) throws(HandoffError) -> HandoffSwitch {
        var changed = loaded()
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

    /// Replaces the file whole, so that a node that ends meanwhile leaves the old one.
    private func write(_ state: HandoffSwitch) throws(Errno) {
        guard state != HandoffSwitch() else {
            guard unlink(path) == 0 || errno == ENOENT else { throw Errno(rawValue: errno) }
            return
        }
        let lines = (state.isOn ? [] : ["off"]) + state.offApplications.sorted().map { "off \($0)" }
        let new = path + ".new"
        do {
            let file = try FileDescriptor.open(
                FilePath(new), .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
            _ = try file.closeAfter { try file.writeAll(lines.map { $0 + "\n" }.joined().utf8) }
            guard rename(new, path) == 0 else { throw Errno(rawValue: errno) }
        } catch {
            unlink(new)
            throw error as? Errno ?? .ioError
        }
    }

    private func load() -> HandoffSwitch {
        var state = HandoffSwitch()
        do {
            guard let content = try read() else { return state }
            for (index, line) in content.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                guard Self.take(line, into: &state) else {
                    state.problem = "line \(index + 1) of \(path) is neither “off” nor “off IDENTIFIER”"
                    break
                }
            }
        } catch {
            state.problem = "\(path) cannot be read: \(error)"
        }
        if state.problem != nil { state.isOn = false }
        return state
    }

    /// - Returns: whether it is a line of ours.
    private static func take(_ line: Substring, into state: inout HandoffSwitch) -> Bool {
        let words = line.split(whereSeparator: \.isWhitespace)
        guard let first = words.first else { return true }
        guard first == "off" else { return false }
        switch words.count {
        case 1:
            state.isOn = false
            return true
        case 2 where state.offApplications.count < HandoffSwitch.bound:
            state.offApplications.insert(String(words[1]))
            return true
        case _: return false
        }
    }

    /// - Returns: `nil` where there is no file.
    private func read() throws(Errno) -> String? {
        do {
            let file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
            return try file.closeAfter {
                var content: [UInt8] = []
                var part = [UInt8](repeating: 0, count: 16 << 10)
                while true {
                    let count = try part.withUnsafeMutableBytes { try file.read(into: $0) }
                    guard count > 0 else { return String(decoding: content, as: UTF8.self) }
                    content += part[..<count]
                    guard content.count <= Self.sizeBound else { throw Errno.fileTooLarge }
                }
            }
        } catch Errno.noSuchFileOrDirectory {
            return nil
        } catch {
            throw error as? Errno ?? .ioError
        }
    }
}
