// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation

/// A terminal of 80 columns and 24 rows on a lab host, with keyboard and screen.
///
/// tmux is the terminal, so tests see the screen of a real one.
struct LabTerminal {
    /// A failure at the terminal.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let lab: HandoffLab
    private let host: Int
    private let socket: String

    /// The terminal of a host, open or not.
    init(_ lab: HandoffLab, _ host: Int) {
        self.lab = lab
        self.host = host
        socket = lab.folder.appendingPathComponent("terminal-\(host)").path
    }

    /// The arguments that run a command in this terminal, before the command.
    private var opening: [String] {
        // Without the configuration of the user who runs the tests.
        ["env", "-u", "TMUX", "LC_ALL=C.UTF-8", "tmux", "-u", "-S", socket, "-f", "/dev/null"]
            + ["new-session", "-d", "-x", "80", "-y", "24"]
    }

    /// Opens it with a shell that runs a program of this package, and then prints the state of the terminal.
    func open(_ product: String) async throws {
        let script = "\(Lab.product(product)); echo \"ended $?\"; stty -a; exec cat"
        try await open(["env", "SWIFT_BACKTRACE=enable=no", "sh", "-c", script])
    }

    /// Opens it with an interactive shell in it.
    func openShell() async throws {
        try await open(["env", "PS1=prompt>", "bash", "--norc", "--noprofile", "-i"])
    }

    private func open(_ command: [String]) async throws {
        // tmux stays alive. It would keep the descriptors by which Foundation sees that the process has ended. Its
        // programs would inherit the signals that the tests' threads block.
        let script = """
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.closerange(3, 65536)
            os.execvp(sys.argv[1], sys.argv[1:])
            """
        let record = [";", "pipe-pane", "cat >>'\(recording.path)'"]
        _ = try await run(["python3", "-c", script] + opening + command + record)
    }

    /// Ends the programs in it.
    func close() async throws {
        try await tmux("kill-server")
        try await eventually("the terminal is gone") { try await screen().isEmpty }
    }

    /// A folder for the `PATH` of a host's node, with a program that opens this terminal.
    func desktop() throws -> URL {
        let folder = try lab.destination("desktop-\(host)")
        let script = folder.appendingPathComponent("xdg-terminal-exec")
        let command = opening.map { "'\($0)'" }.joined(separator: " ")
        let recording = "pipe-pane \"cat >>'\(recording.path)'\""
        try Data("#!/bin/sh\nexec \(command) \"$@\" ';' \(recording)\n".utf8).write(to: script)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: script.path)
        // The samples are found where a user would have installed them.
        for product in ["shopsnap", "monkeybrowser"] {
            try FileManager.default.createSymbolicLink(
                atPath: folder.appendingPathComponent(product).path, withDestinationPath: Lab.product(product))
        }
        return folder
    }

    /// All output so far.
    private var recording: URL { lab.folder.appendingPathComponent("recording-\(host)") }

    /// Whether a text has been written to it as a whole, even if it was on the screen for a moment only.
    func hasShown(_ text: String) -> Bool {
        (try? Data(contentsOf: recording))?.range(of: Data(text.utf8)) != nil
    }

    /// Waits until ``hasShown(_:)``.
    func showed(_ text: String, within timeout: Duration = .seconds(30)) async throws {
        try await eventually("host \(host) showed \(text)", within: timeout) { hasShown(text) }
    }

    /// Types characters.
    func type(_ text: String) async throws {
        try await tmux("send-keys", "-l", text)
    }

    /// Presses keys by the names that tmux has for them, such as `Enter` or `C-c`.
    func press(_ keys: String...) async throws {
        for key in keys { try await tmux("send-keys", key) }
    }

    func resize(columns: Int, rows: Int) async throws {
        try await tmux("resize-window", "-x", "\(columns)", "-y", "\(rows)")
    }

    /// The lines on the screen; empty without a terminal.
    func screen() async throws -> String {
        let shown = try await run(["tmux", "-S", socket, "capture-pane", "-p"], mayFail: true)
        return shown.status == 0 ? shown.lines.joined(separator: "\n") : ""
    }

    /// Column and row of the cursor, from 0.
    func cursor() async throws -> String {
        try await tmux("display-message", "-p", "#{cursor_x},#{cursor_y}").lines.first ?? ""
    }

    /// The process of a program that runs in it.
    func process(_ product: String) async throws -> Int32 {
        let first = try await tmux("display-message", "-p", "#{pane_pid}").lines.first ?? ""
        // The shell that runs it, or the program itself.
        let children = try? String(contentsOfFile: "/proc/\(first)/task/\(first)/children", encoding: .utf8)
        for pid in [first] + (children ?? "").split(separator: " ").map(String.init) {
            let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/exe")
            if program?.hasSuffix("/" + product) == true, let pid = Int32(pid) { return pid }
        }
        throw Failure(description: "no \(product) runs in the terminal of host \(host)")
    }

    /// Whether a full-screen program has it.
    func isTaken() async throws -> Bool {
        try await tmux("display-message", "-p", "#{alternate_on}").lines.first == "1"
    }

    /// Waits until the screen shows all of these.
    func shows(_ texts: String..., within timeout: Duration = .seconds(30)) async throws {
        var last = ""
        do {
            try await eventually("host \(host) shows \(texts)", within: timeout) {
                last = try await screen()
                return texts.allSatisfy { last.contains($0) }
            }
        } catch {
            throw Failure(description: "\(error); it shows:\n\(last)")
        }
    }

    @discardableResult
    private func tmux(_ arguments: String...) async throws -> HostCommand.Finished {
        try await run(["tmux", "-S", socket] + arguments)
    }

    private func run(_ command: [String], mayFail: Bool = false) async throws -> HostCommand.Finished {
        let finished = try await lab.startProgram(host, command).end()
        guard mayFail || finished.status == 0 else {
            throw Failure(description: "\(command): \(finished.errors)\(finished.lines)")
        }
        return finished
    }
}
