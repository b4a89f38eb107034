// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import SystemPackage

/// Makes what was written durable, aside of the writing, so that the journal can say so.
///
/// One synchronisation at a time, on a thread of its own: it takes as long as the disk does.
final class DiskMarker: Sendable {
    /// Bytes that are written between two of them: 128 MiB.
    static let byteInterval: UInt64 = 128 << 20
    /// The longest time between two of them while something is written, in nanoseconds: 10 s.
    static let timeInterval: UInt64 = 10_000_000_000

    private enum State {
        case idle
        case synchronizing
        case over(Outcome)
    }

    /// How a synchronisation has ended.
    enum Outcome: Equatable {
        /// These entries of the journal are covered.
        case covered(UInt64)
        /// What was written since the last one that went well may be gone. The disk does not say so again.
        case failed(Errno)
    }

    private let thread: PrivateThread
    private let state = Lock(State.idle)

    init() throws(Errno) {
        thread = try PrivateThread(name: "baton-sync")
    }

    /// Whether nothing is synchronised at this moment, and nothing that was waits to be taken.
    var isIdle: Bool {
        state.withLock { state in
            switch state {
            case .idle: true
            case .synchronizing, .over: false
            }
        }
    }

    /// Begins to synchronise, unless it is at it.
    ///
    /// - Parameters:
    ///   - count: the entries of the journal that are covered.
    ///   - file: what is synchronised, and closed.
    func begin(covering count: UInt64, _ file: consuming DescriptorToSynchronize) {
        let isIdle = state.withLock { state in
            switch state {
            case .idle:
                state = .synchronizing
                return true
            case .synchronizing, .over: return false
            }
        }
        guard isIdle else { return }
        let target = SharedDescriptor(file)
        thread.submit { [self] in
            let outcome: Outcome
            do throws(Errno) {
                try target.descriptor.synchronize()
                outcome = .covered(count)
            } catch {
                outcome = .failed(error)
            }
            state.withLock { $0 = .over(outcome) }
        }
    }

    /// How a synchronisation went that has ended since the last call.
    func takeOutcome() -> Outcome? {
        state.withLock { state in
            guard case .over(let outcome) = state else { return nil }
            state = .idle
            return outcome
        }
    }

    /// Waits until nothing is synchronised: as long as the disk takes.
    func settle() {
        thread.perform {}
    }

    /// An owned descriptor that a closure can carry to another thread.
    private final class SharedDescriptor: Sendable {
        let descriptor: DescriptorToSynchronize

        init(_ descriptor: consuming DescriptorToSynchronize) {
            self.descriptor = descriptor
        }
    }
}
