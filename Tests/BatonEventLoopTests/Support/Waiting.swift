// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import Testing

/// Waits until `condition` holds, and records an issue when it does not within `seconds`.
@discardableResult
func eventually(
    _ what: Comment, within seconds: UInt64 = 20, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: @Sendable () async throws -> Bool
) async rethrows -> Bool {
    let deadline = MonotonicClock.nanoseconds() + seconds * 1_000_000_000
    while true {
        // The time is read first: a test that was itself held up for long has one more look.
        let isLate = MonotonicClock.nanoseconds() >= deadline
        if try await condition() { return true }
        if isLate { break }
        try? await Task.sleep(for: .milliseconds(1))
    }
    Issue.record(what, sourceLocation: sourceLocation)
    return false
}

/// A value that handlers on any thread change and tests look at.
final class Box<Value: Sendable>: Sendable {
    private let mutex: Lock<Value>

    init(_ value: Value) { mutex = Lock(value) }

    var value: Value {
        get { mutex.withLock { $0 } }
        set { mutex.withLock { $0 = newValue } }
    }

    func change(_ body: (inout Value) -> Void) {
        mutex.withLock { body(&$0) }
    }
}

/// Whether an object still lives, without keeping it alive.
final class WeakBox<Object: AnyObject & Sendable>: Sendable {
    private let mutex: Lock<Weak>

    private struct Weak {
        weak var object: Object?
    }

    init(_ object: Object) { mutex = Lock(Weak(object: object)) }

    var isReleased: Bool { mutex.withLock { $0.object == nil } }
}

/// Tests that are processes of their own, because what they look at belongs to a whole process: descriptors, threads,
/// signals, processor time.
///
/// One at a time: waiting for a child blocks a thread of the concurrency pool, and there are as few as processors.
@Suite("In a process of its own", .serialized)
enum OwnProcess {}
