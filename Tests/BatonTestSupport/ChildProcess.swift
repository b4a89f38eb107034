// SPDX-License-Identifier: Apache-2.0

import CSpawn
package import Foundation
import Glibc
import SystemPackage

/// A program that runs beside the tests, until it ends or this value goes.
///
/// Foundation's `Process` copies whole `dirent`s from its buffer of `/proc/self/fd`, and so reads beyond its end. That
/// kills the tests now and then while they have more than some 1,300 descriptors open. And its children keep
/// descriptors that another thread opens while they start (swift-corelibs-foundation issue 4795).
///
/// The program begins with the default action for every signal, none of them blocked, and with no descriptors but its
/// standard ones. It is reaped when this value goes: its process id is nobody else's before, and a signal hits no
/// stranger.
package final class ChildProcess: Sendable {
    /// Where a program writes.
    package enum Output: Sendable {
        /// Where the tests do.
        case inherited
        /// To ``ChildProcess/output``, which somebody has to read: a program waits where a pipe is full.
        case pipe
        /// To the end of a file, which is empty at first.
        case file(String)

        /// Nowhere.
        package static let null = Output.file("/dev/null")
    }

    /// How a program ended.
    package enum Ending: Sendable, Hashable {
        case exited(Int32)
        case signalled(Int32)

        /// The exit status, or the number of the signal.
        package var status: Int32 {
            switch self {
            case .exited(let number), .signalled(let number): number
            }
        }
    }

    /// Its process id.
    package let processIdentifier: Int32

    /// The writing end of its standard input. Writing there blocks while the pipe is full, and fails when it has ended.
    package let input: FileHandle

    /// The reading end of the pipe that it has for its output; at its end where there is none.
    package let output: FileHandle

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - command: the program, by its path or as `PATH` of the tests has it, and its arguments.
    ///   - environment: all of it.
    package init(
        _ command: [String], environment: [String: String] = ProcessInfo.processInfo.environment,
        output: Output = .inherited, error: Output = .inherited
    ) throws {
        // A program that ends closes its standard input, and writing there must not kill the tests.
        Glibc.signal(SIGPIPE, SIG_IGN)
        let (reader, input) = try Self.pipe()
        let (ownOutput, writer) = try Self.pipe()
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, reader.fileDescriptor, STDIN_FILENO)
        for (output, number) in [(output, STDOUT_FILENO), (error, STDERR_FILENO)] {
            switch output {
            case .inherited: break
            case .pipe: posix_spawn_file_actions_adddup2(&actions, writer.fileDescriptor, number)
            case .file(let path):
                let flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND
                posix_spawn_file_actions_addopen(&actions, number, path, flags, 0o666)
            }
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        let words = command.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var process = pid_t()
        let failure = posix_spawnp(&process, command[0], &actions, &attributes, words, variables)
        guard failure == 0 else { throw Errno(rawValue: failure) }
        (processIdentifier, self.input, self.output) = (process, input, ownOutput)
        try reader.close()
        try writer.close()
    }

    deinit {
        signal(SIGKILL)
        while waitpid(processIdentifier, nil, 0) < 0, errno == EINTR {}
    }

    /// Runs a program to its end, and returns what it wrote to a pipe: what programs that it leaves running write there
    /// as well.
    @discardableResult
    package static func run(
        _ command: [String], input: Data = Data(), output: Output = .pipe, error: Output = .inherited
    ) throws -> (ending: Ending, output: String) {
        let process = try ChildProcess(command, output: output, error: error)
        // On a thread: the program may write more than a pipe takes before it has read all.
        Thread.detachNewThread { [handle = process.input] in
            try? handle.write(contentsOf: input)
            try? handle.close()
        }
        let output = String(decoding: try process.output.readToEnd() ?? Data(), as: UTF8.self)
        return (process.waitUntilExit(), output)
    }

    /// How it ended; `nil` while it runs.
    package var ending: Ending? { look(WNOHANG) }

    package var isRunning: Bool { ending == nil }

    /// Waits until it has ended. Blocks the thread.
    @discardableResult
    package func waitUntilExit() -> Ending {
        while true {
            if let ending = look(0) { return ending }
        }
    }

    /// Sends it a signal, which is nothing to a program that has ended.
    package func signal(_ number: Int32) {
        kill(processIdentifier, number)
    }

    /// Looks without reaping (`waitid(2)`), so that anybody may, any number of times.
    private func look(_ options: Int32) -> Ending? {
        var change = siginfo_t()
        guard waitid(P_PID, id_t(processIdentifier), &change, WEXITED | WNOWAIT | options) == 0 else {
            precondition(errno == EINTR, "somebody else has reaped a child of the tests")
            return nil
        }
        guard change.si_signo == SIGCHLD else { return nil }
        let status = change._sifields._sigchld.si_status
        return change.si_code == CLD_EXITED ? .exited(status) : .signalled(status)
    }

    /// A pipe whose ends no other child gets.
    private static func pipe() throws -> (reader: FileHandle, writer: FileHandle) {
        let ends = try FileDescriptor.pipe(options: .closeOnExec)
        return (
            FileHandle(fileDescriptor: ends.readEnd.rawValue, closeOnDealloc: true),
            FileHandle(fileDescriptor: ends.writeEnd.rawValue, closeOnDealloc: true)
        )
    }
}
