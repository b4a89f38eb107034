// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// Tells systemd at regular intervals that this process works, as sd_watchdog_enabled(3) describes.
///
/// The manager restarts a process that has been silent for too long. A node with `WatchdogSec=60` wakes up twice a
/// minute for this.
struct Watchdog: Sendable {
    /// The time between two messages: half of the time after which systemd restarts the process.
    let interval: Duration

    private let socket: String

    /// Reads what the service manager asks for. Nil if it does not watch this process.
    ///
    /// - Parameter environment: `WATCHDOG_USEC` is the time in microseconds, and `WATCHDOG_PID` is the process that is
    ///   watched, if there is only one. `NOTIFY_SOCKET` is the manager's socket.
    init?(environment: [String: String]) {
        guard let socket = environment["NOTIFY_SOCKET"],
            let microseconds = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), microseconds > 1
        else { return nil }
        if let process = environment["WATCHDOG_PID"], process != String(getpid()) { return nil }
        self.socket = socket
        interval = .microseconds(microseconds / 2)
    }

    /// Sends a message after each check, until the task is cancelled. It sends nothing while a check hangs.
    ///
    /// - Parameter check: returns when the process has shown that it works.
    func run(_ check: () async -> Void) async throws(CancellationError) {
        while true {
            await check()
            ServiceManager.notify("WATCHDOG=1", socket: socket)
            try await Alarm.sleep(for: interval)
        }
    }
}
