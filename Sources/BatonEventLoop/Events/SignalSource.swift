// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A signal of the process (`SIGTERM`, `SIGINT`, `SIGHUP`, `SIGWINCH`, …) as an event on a loop.
///
/// From the moment ``watch(_:on:handler:)`` returns, the signal has no default effect, also after the source has gone:
/// Dispatch keeps its handler, and the signal is then ignored. Signals that come faster than the handler runs are one
/// event, as signals are. Programs that this process starts get the default behaviour, because a handler, unlike
/// "ignore", does not survive `exec`.
///
/// `SIGPIPE` needs no source: the sockets of this module write with `MSG_NOSIGNAL`.
package final class SignalSource: Sendable {
    private let source: EventSource

    private init(_ source: EventSource) { self.source = source }

    /// Watches a signal and returns once it is watched, so that none is lost in between.
    ///
    /// - Parameters:
    ///   - signal: such as `SIGTERM`. Not `SIGKILL`, `SIGSTOP`, or a fault of the program itself.
    ///   - loop: the loop of the handler.
    ///   - handler: runs for each delivery, until the end of the source.
    /// - Returns: the source, which watches as long as it is held.
    package static func watch(
        _ signal: Int32, on loop: EventLoop, handler: @escaping @Sendable () -> Void
    ) async -> SignalSource {
        let isWatched = FirstResult<Void>()
        let source = EventSource.signal(signal, on: loop, registered: { isWatched.decide(()) }, handler: handler)
        await isWatched.value()
        return SignalSource(source)
    }

    /// Whether the process was started with the signal ignored, as `nohup` does with `SIGHUP`.
    ///
    /// Ask before watching, because such a signal should stay ignored.
    package static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { return false }
        // SIG_IGN is the pointer of value 1, which cannot be compared as a function.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self) == 1
    }
}
