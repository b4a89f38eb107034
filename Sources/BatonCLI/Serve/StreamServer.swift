// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTransport
import Glibc

/// Runs a command for each continuation stream: at most ``bound`` at once, and at most half of them for one device.
actor StreamServer {
    /// Commands at once: 16. Each is a process with two pipes and at most 4 MiB of queued output. A further one is
    /// refused.
    static let bound = 16
    /// Commands at once for one device: 8, so that one device cannot occupy all places.
    static let boundOfDevice = bound / 2

    private let command: ServedCommand
    /// The number of running commands of each device, by its identifier. A device can have any name.
    private var running: [String: Int] = [:]

    /// From here on the process ignores SIGPIPE: writing to a command that does not read fails instead.
    init(command: ServedCommand) {
        signal(SIGPIPE, SIG_IGN)
        self.command = command
    }

    /// Serves one stream until its command has ended.
    ///
    /// - Parameters:
    ///   - name: the name of the device.
    ///   - device: the identifier of the device.
    ///   - note: receives a sentence if the command fails.
    /// - Returns: whether the command succeeded.
    func serve(
        _ stream: BatonTransport.Stream, from name: String, identified device: String,
        note: @Sendable (String) async -> Void
    ) async -> Bool {
        let shown = SafeText.escaped(name)
        if let many = full(for: device) {
            let refusal = "\(many) commands for streams are running there already: try later"
            await stream.fail(HandoffError(.limitExceeded, refusal))
            await note("a stream from \(shown) was refused: \(many) commands are running already")
            return false
        }
        running[device, default: 0] += 1
        defer {
            running[device]? -= 1
            if running[device] == 0 { running[device] = nil }
        }
        let name = command.executable.shown
        switch await ServedProcess(command: command, stream: stream).run() {
        case .exited(let status):
            if status != 0 { await note("\(name) (for \(shown)) ended with status \(status)") }
            return status == 0
        case .signalled(let signal):
            await note("\(name) (for \(shown)) was ended by signal \(signal)")
            return false
        case .aborted:
            await note("the stream from \(shown) was aborted; \(name) was ended")
            return false
        case .notStarted(let reason):
            await note("\(name) cannot be started: \(reason)")
            return false
        }
    }

    /// The number of running commands if the device may not start another one; nil if it may.
    private func full(for device: String) -> Int? {
        let all = running.values.reduce(0, +)
        if all >= Self.bound { return all }
        let own = running[device] ?? 0
        return own >= Self.boundOfDevice ? own : nil
    }
}
