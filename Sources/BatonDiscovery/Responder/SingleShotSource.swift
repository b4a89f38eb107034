// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// Tells once when a borrowed descriptor becomes readable, and again each time it is armed.
///
/// The reaction happens on another thread, and a level-triggered source would fire without end until then. It owns a
/// duplicate of the descriptor and watches that, so that a `DNSServiceRef` may close the original at any time.
///
/// All methods may be called from anywhere.
final class SingleShotSource: Sendable {
    /// Nil only while it is made.
    private let source = Lock<ReadinessSource?>(nil)

    /// Starts disarmed. Nil when the process has no descriptor left.
    ///
    /// - Parameters:
    ///   - descriptor: is duplicated here; may be closed as soon as this returns.
    ///   - loop: where `handler` runs.
    init?(_ descriptor: Int32, on loop: EventLoop, handler: @escaping @Sendable () -> Void) {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else { return nil }
        let source = try? ReadinessSource(reading: OwnedDescriptor(takingOwnershipOf: duplicate), on: loop) {
            [weak self] in
            guard let self else { return }
            disarm()
            handler()
        }
        guard let source else { return nil }
        self.source.withLock { $0 = source }
    }

    /// Lets the handler run once. Idempotent; nothing after a cancel.
    ///
    /// - Returns: false if the kernel watches no further descriptor.
    func arm() -> Bool { (try? source.withLock { $0 }?.resume()) != nil }

    /// Ends the source for good; a handler that is on its way may still run once. Idempotent.
    func cancel() { source.withLock { $0 }?.cancel() }

    private func disarm() { source.withLock { $0 }?.suspend() }
}
