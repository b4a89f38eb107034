// SPDX-License-Identifier: Apache-2.0

package import Foundation
import Synchronization

/// A network of a few hosts on this machine, made by `Scripts/lab`: each host has its own network namespace, D-Bus and
/// Avahi. It goes down with ``down()``, with its last reference, and in any case when the test process ends.
///
/// ```swift
/// @Suite(.enabled(if: Lab.unavailableReason == nil, "\(Lab.unavailableReason ?? "")"))
/// ```
package final class Lab: Sendable {
    /// The output of a lab command that failed.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) {
            self.description = description
        }
    }

    /// The lab's name, unique among all test runs of this machine.
    package let name: String

    private static let count = Mutex(0)
    private let isDown = Mutex(false)

    /// Makes a lab, in one to two seconds.
    package init(hosts: Int = 2) throws {
        let serial = Self.count.withLock { count in
            count += 1
            return count
        }
        name = "test-\(ProcessInfo.processInfo.processIdentifier)-\(serial)"
        try command("up", "--hosts", "\(hosts)", "--owner", "\(ProcessInfo.processInfo.processIdentifier)")
    }

    /// Makes a network on a thread of its own.
    ///
    /// Tests share as few threads as there are processors. If one of those waited here for children, every other test
    /// would stand still, and would act too late for its deadlines.
    package static func make(hosts: Int = 2) async throws -> Lab {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try Lab(hosts: hosts) }) }
        }
    }

    deinit {
        if !isDown.withLock({ $0 }) { down() }
    }

    /// Ends everything that runs on the hosts, and the hosts. Idempotent.
    package func down() {
        _ = try? command("down")
        isDown.withLock { $0 = true }
    }

    /// Why there can be no lab here, as a sentence; nil when there can be one.
    package static let unavailableReason: String? = {
        let (ending, output) = (try? execute([script, "check"])) ?? (.exited(1), "\(script) does not run")
        return ending == .exited(0) ? nil : output.trimmingCharacters(in: .whitespacesAndNewlines)
    }()

    /// Runs a command of `Scripts/lab` on this lab, as in `command("link", "1", "down")`, and returns its output.
    @discardableResult
    package func command(_ arguments: String...) throws -> String { try command(arguments) }

    /// The same of arguments in a list.
    @discardableResult
    package func command(_ arguments: [String]) throws -> String {
        let (ending, output) = try Self.execute([Self.script, "--name", name] + arguments)
        guard ending == .exited(0) else {
            throw Failure(description: "lab \(arguments.joined(separator: " ")): \(output)")
        }
        return output
    }

    /// Starts a program on a host. It is the program itself, not a wrapper: its pid and its signals are its own.
    package func start(_ host: Int, _ arguments: [String]) throws -> LabProgram {
        try LabProgram([Self.script, "--name", name, "run", "\(host)"] + arguments)
    }

    /// The path of an executable of this package, beside the running tests.
    package static func product(_ name: String) -> String {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
    }

    private static let script = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Scripts/lab").path

    private static func execute(_ arguments: [String]) throws -> (ending: ChildProcess.Ending, output: String) {
        // A file and not a pipe: what the lab leaves running would keep a pipe open.
        let folder = try ScratchFolder("command")
        defer { folder.remove() }
        let file = folder.path + "/output"
        let output = ChildProcess.Output.file(file)
        let ending = try ChildProcess.run(["bash"] + arguments, output: output, error: output).ending
        return (ending, (try? String(contentsOfFile: file, encoding: .utf8)) ?? "")
    }
}

/// A program that runs on a lab host, with its standard input and its lines of output.
package final class LabProgram: Sendable {
    private struct Output {
        var lines: [String] = []
        var partial = Data()
        var isEnded = false
    }

    private let process: ChildProcess
    private let output = Mutex(Output())

    fileprivate init(_ arguments: [String]) throws {
        process = try ChildProcess(["bash"] + arguments, output: .pipe)
        // A handler of the file handle would be a source of Dispatch's. Removing such a source when the other end hangs
        // up can end the process, as ``ReadinessPoll`` says.
        Thread { [weak self, output = process.output] in
            while true {
                let data = output.availableData
                self?.receive(data)
                if data.isEmpty { return }
            }
        }.start()
    }

    /// Its process id.
    package var processIdentifier: Int32 { process.processIdentifier }

    /// Whether it runs.
    package var isRunning: Bool { process.isRunning }

    /// Every line it has printed so far.
    package var lines: [String] { output.withLock { $0.lines } }

    /// Writes a line to its standard input. Ignored when it has ended.
    package func send(_ line: String) {
        try? process.input.write(contentsOf: Data((line + "\n").utf8))
    }

    /// Writes bytes to its standard input. Blocks while the pipe is full. Ignored when the program has ended.
    package func send(_ data: Data) {
        try? process.input.write(contentsOf: data)
    }

    /// Closes its standard input.
    package func closeInput() {
        try? process.input.close()
    }

    /// Sends it a signal. After SIGSTOP this returns when the program has stopped, because each of its threads goes on
    /// until it notices.
    package func signal(_ number: Int32) {
        guard process.isRunning else { return }
        process.signal(number)
        guard number == SIGSTOP else { return }
        // A thread that waits for a disk stops late, and does nothing else before.
        for _ in 0..<1000 where !isStopped { usleep(1000) }
    }

    /// Whether it, which is this process's child, has stopped with all its threads (`waitid(2)`).
    private var isStopped: Bool {
        var change = siginfo_t()
        let options = WSTOPPED | WNOWAIT | WNOHANG
        return waitid(P_PID, id_t(process.processIdentifier), &change, options) == 0 && change.si_signo == SIGCHLD
    }

    /// Waits for a line that `isWanted` takes, from line `start` on, and returns its index and text.
    ///
    /// - Throws: ``Lab/Failure`` with everything it printed, when the deadline passes or its output ends first.
    @discardableResult
    package func line(
        from start: Int = 0, within timeout: Duration = .seconds(20), where isWanted: (String) -> Bool
    ) async throws -> (index: Int, text: String) {
        let deadline = ContinuousClock.now + timeout
        var looked = start
        while true {
            let (lines, isEnded) = output.withLock { ($0.lines, $0.isEnded) }
            while looked < lines.count {
                if isWanted(lines[looked]) { return (looked, lines[looked]) }
                looked += 1
            }
            guard !isEnded else { throw failure("ended before the awaited line", lines) }
            guard ContinuousClock.now < deadline else { throw failure("did not print the awaited line", lines) }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Waits until it has ended and all that it printed is here, and returns its exit code or the number of the signal.
    package func end(within timeout: Duration = .seconds(20)) async throws -> Int32 {
        let deadline = ContinuousClock.now + timeout
        while true {
            let isLate = ContinuousClock.now >= deadline
            // Its own children may keep its output open.
            if isLate || output.withLock({ $0.isEnded }), let ending = process.ending { return ending.status }
            guard !isLate else { throw failure("does not end", lines) }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private func receive(_ data: Data) {
        output.withLock { output in
            guard !data.isEmpty else {
                output.isEnded = true
                return
            }
            output.partial.append(data)
            while let newline = output.partial.firstIndex(of: 10) {
                output.lines.append(String(decoding: output.partial[..<newline], as: UTF8.self))
                output.partial = Data(output.partial[output.partial.index(after: newline)...])
            }
        }
    }

    private func failure(_ what: String, _ lines: [String]) -> Lab.Failure {
        Lab.Failure(description: "the program on the lab host \(what); it printed:\n" + lines.joined(separator: "\n"))
    }
}
