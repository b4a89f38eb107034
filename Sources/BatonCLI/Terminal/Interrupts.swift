// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// Calls a handler for the signals that ask the command to stop, for as long as this object lives.
///
/// A signal that the process ignores since its start (`nohup`) stays ignored. A second signal ends the process at once:
/// a user who presses ^C twice does not want to wait.
final class Interrupts: Sendable {
    /// Kept: when a queue goes, Dispatch wakes the process once a second from then on (see `GlobalPool`).
    private static let loop = EventLoop(name: "signals")

    private let sources: [SignalSource]

    private init(_ sources: [SignalSource]) {
        self.sources = sources
    }

    /// - Parameter handler: called once, with the first signal, on a queue of its own.
    static func watch(
        _ signals: [Int32] = [SIGINT, SIGTERM], handler: @escaping @Sendable (Int32) -> Void
    ) async -> Interrupts {
        let first = OneTime()
        var sources: [SignalSource] = []
        for signal in signals where !SignalSource.isIgnored(signal) {
            sources.append(
                await SignalSource.watch(signal, on: loop) {
                    if first.take() { handler(signal) } else { _exit(ExitStatus.interrupted.rawValue) }
                })
        }
        return Interrupts(sources)
    }
}
