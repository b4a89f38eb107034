// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import Logging
import SystemPackage

/// Notifies systemd, as sd_notify(3) describes: by one datagram to the socket that `NOTIFY_SOCKET` names.
///
/// This is one `sendto`. libsystemd would be one more dependency.
enum ServiceManager {
    /// Sends a state such as `READY=1`. Without a service manager it does nothing.
    ///
    /// - Parameter path: the manager's socket, as `NOTIFY_SOCKET` names it. A name in Linux's abstract namespace (`@`),
    ///   which no user's manager has, is passed over.
    static func notify(_ state: String, socket path: String?) {
        guard let path, path.hasPrefix("/") else { return }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { _ = close(descriptor) }
        let bytes = Array(state.utf8)
        try? SocketAddress.unix(FilePath(path)).withSystemAddress {
            _ = sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1)
        }
    }
}

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

/// The log of a command that runs for long: one line for each entry, on standard error. The journal adds the time.
struct ErrorOutputLog: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    private let name: String

    /// - Parameter name: the name of the command. Each line begins with it.
    init(level: Logger.Level, name: String) {
        logLevel = level
        self.name = name
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { Output.say(line(of: event)) }

    /// One entry as a line. It may contain names from other devices, so it is escaped.
    func line(of event: LogEvent) -> String {
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        return "\(name): \(event.level): " + SafeText.escaped("\(event.message)\(details)")
    }
}
