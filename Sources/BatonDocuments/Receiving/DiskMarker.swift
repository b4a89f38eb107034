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
        case done(covering: UInt64)
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
            case .synchronizing, .done: false
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
            case .synchronizing, .done: return false
            }
        }
        guard isIdle else { return }
        let target = SharedDescriptor(file)
        thread.submit { [self] in
            let isDurable = (try? target.descriptor.synchronize()) != nil
            // A disk that fails says so again when the document is put in place.
            state.withLock { $0 = isDurable ? .done(covering: count) : .idle }
        }
    }

    /// The entries that are covered by a synchronisation that has ended since the last call.
    func takeCovered() -> UInt64? {
        state.withLock { state in
            guard case .done(let count) = state else { return nil }
            state = .idle
            return count
        }
    }

    /// An owned descriptor that a closure can carry to another thread.
    private final class SharedDescriptor: Sendable {
        let descriptor: DescriptorToSynchronize

        init(_ descriptor: consuming DescriptorToSynchronize) {
            self.descriptor = descriptor
        }
    }
}
