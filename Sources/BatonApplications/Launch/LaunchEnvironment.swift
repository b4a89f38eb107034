// SPDX-License-Identifier: Apache-2.0

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
