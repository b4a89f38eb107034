// SPDX-License-Identifier: Apache-2.0

import Glibc
package import SystemPackage

/// Finds programs as `execvp(3)` does, but before anything is started, so that errors can be told apart.
struct ExecutableSearch: Sendable, Hashable {
    private let folders: [FilePath]

    /// - Parameter environment: `PATH` counts, without its relative folders, since the working folder here means
    ///   nothing.
    init(environment: [String: String]) {
        folders = (environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
            .filter { $0.hasPrefix("/") }.map { FilePath(String($0)) }
    }

    /// The file of a program.
    ///
    /// - Parameter program: a name, which is looked for on `PATH`, or an absolute path.
    func find(_ program: String) throws(LaunchError) -> FilePath {
        if program.hasPrefix("/") {
            let path = FilePath(program)
            switch Self.check(path) {
            case .executable: return path
            case .notExecutable:
                throw LaunchError(.notExecutable, "\(program) cannot be run: it is no program, or not for this user")
            case .missing: throw LaunchError(.commandNotFound, "there is no \(program)")
            }
        }
        guard !program.contains("/") else {
            throw LaunchError(.commandNotFound, "\(program) is no absolute path: register it with one")
        }
        var unusable: FilePath?
        for folder in folders {
            let path = folder.appending(program)
            switch Self.check(path) {
            case .executable: return path
            case .notExecutable: unusable = unusable ?? path
            case .missing: continue
            }
        }
        if let unusable {
            throw LaunchError(.notExecutable, "\(unusable) cannot be run: it is no program, or not for this user")
        }
        throw LaunchError(.commandNotFound, "there is no program \(program) in PATH")
    }

    private enum Finding {
        case executable
        case notExecutable
        case missing
    }

    private static func check(_ path: FilePath) -> Finding {
        guard let status = try? path.stat() else { return .missing }
        guard status.type == .regular, access(path.string, X_OK) == 0 else { return .notExecutable }
        return .executable
    }
}

/// The environment of an application that the node starts.
enum LaunchEnvironment {
    /// The variables of the node's own conversation with the service manager, which another program must not join:
    /// systemd.exec(5), "Environment Variables in Spawned Processes"; sd_notify(3), sd_listen_fds(3).
    private static let own: Set<String> = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
        "LISTEN_PIDFDID", "FDSTORE", "MAINPID", "MANAGERPID", "MANAGERPIDFDID", "SYSTEMD_EXEC_PID", "INVOCATION_ID",
        "JOURNAL_STREAM", "CREDENTIALS_DIRECTORY", "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY",
        "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE",
        "TRIGGER_UNIT", "TRIGGER_PATH",
    ]

    /// The node's environment without those variables, and with the additions. Names that a shell could not set are
    /// left out.
    static func make(_ environment: [String: String], adding additions: [String: String]) -> [String: String] {
        environment.filter { !own.contains($0.key) && isName($0.key) }.merging(additions) { $1 }
    }

    private static func isName(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.enumerated().allSatisfy { index, byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"):
                    true
                case UInt8(ascii: "0")...UInt8(ascii: "9"): index > 0
                case _: false
                }
            }
    }
}

/// Why an application was not started, or nothing could be opened, as a sentence that begins with a small letter.
package struct LaunchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of failures.
    package enum Code: Sendable {
        /// The manifest names no command.
        case noCommand
        /// The program is nowhere on `PATH`, or not where the command says.
        case commandNotFound
        /// The program is there and is no program, or not for this user.
        case notExecutable
        /// The system, or the service manager, could not start it.
        case notStarted
        /// The text is no web address, or the path is no file.
        case notOpenable
        /// `xdg-open` is there and failed.
        case openFailed
    }

    package let code: Code
    /// The problem. It may quote the output of programs: escape it before a terminal shows it.
    package let message: String
    /// The system's error, if it gave one.
    package let underlyingError: Errno?

    init(_ code: Code, _ message: String, underlyingError: Errno? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    package var description: String { message }
}
