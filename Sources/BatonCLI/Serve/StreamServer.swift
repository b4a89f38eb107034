// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTransport
import Glibc

/// Runs a command for each continuation stream, at most ``bound`` at once, and half of them for one device.
actor StreamServer {
    /// Commands at once. Each is a process with two pipes and at most 4 MiB queued on its way; one more is refused.
    static let bound = 16
    /// Commands at once for one device, so that none takes every place from the others.
    static let boundOfDevice = bound / 2

    private let command: ServedCommand
    /// How many commands run for each device that has any, by its identifier: it calls itself as it likes.
    private var running: [String: Int] = [:]

    /// From here on the process ignores SIGPIPE: a command that reads no more shows as an error of the write.
    init(command: ServedCommand) {
        signal(SIGPIPE, SIG_IGN)
        self.command = command
    }

    /// Serves one stream until its command has ended.
    ///
    /// - Parameters:
    ///   - name: what the device calls itself.
    ///   - device: its identifier.
    ///   - note: told how a command failed.
    /// - Returns: whether the command ran, and to its end.
    func serve(
        _ stream: BatonTransport.Stream, from name: String, identified device: String,
        note: @Sendable (String) async -> Void
    ) async -> Bool {
        let shown = SafeText.escaped(name)
        if let many = full(for: device) {
            await stream.fail(HandoffError(.limitExceeded, "\(many) commands run for streams there already: try later"))
            await note("a stream from \(shown) was refused: \(many) commands run already")
            return false
        }
        running[device, default: 0] += 1
        defer {
            running[device]? -= 1
            if running[device] == 0 { running[device] = nil }
        }
        let name = SafeText.escaped(command.executable)
        switch await ServedProcess(command: command, stream: stream).run() {
        case .exited(let status):
            if status != 0 { await note("\(name) (for \(shown)) ended with status \(status)") }
            return true
        case .signalled(let signal):
            await note("\(name) (for \(shown)) was ended by signal \(signal)")
            return true
        case .aborted:
            await note("the stream from \(shown) was aborted; \(name) was ended")
            return false
        case .notStarted(let reason):
            await note("\(name) cannot be started: \(reason)")
            return false
        }
    }

    /// How many commands run where one more of the device would be too many.
    private func full(for device: String) -> Int? {
        let all = running.values.reduce(0, +)
        if all >= Self.bound { return all }
        let own = running[device] ?? 0
        return own >= Self.boundOfDevice ? own : nil
    }
}
