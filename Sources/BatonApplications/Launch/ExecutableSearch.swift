// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

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
        let isPath = program.hasPrefix("/")
        guard isPath || !program.contains("/") else {
            throw LaunchError("\(program) is no absolute path: register it with one")
        }
        let paths = isPath ? [FilePath(program)] : folders.map { $0.appending(program) }
        let files = paths.compactMap { path in (try? path.stat()).map { (path, $0) } }
        if let (path, _) = files.first(where: { $1.type == .regular && access($0.string, X_OK) == 0 }) { return path }
        guard let (path, _) = files.first else {
            throw LaunchError(isPath ? "there is no \(program)" : "there is no program \(program) in PATH")
        }
        throw LaunchError("\(path) cannot be run: it is no program, or not for this user")
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
        let name = /[A-Za-z_][A-Za-z0-9_]*/.matchingSemantics(.unicodeScalar)
        let kept = environment.filter { !own.contains($0.key) && $0.key.wholeMatch(of: name) != nil }
        return kept.merging(additions) { $1 }
    }
}

/// Why an application was not started, or nothing could be opened, as a sentence that begins with a small letter.
package struct LaunchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The problem. It may quote the output of programs: escape it before a terminal shows it.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
