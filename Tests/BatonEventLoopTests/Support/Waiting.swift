// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import Testing

/// A value that handlers change on any thread.
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

/// Tests in processes of their own, because they check a whole process: descriptors, threads, signals, processor time.
///
/// One at a time: waiting for a child blocks a thread of the concurrency pool, which has only as many as processors.
@Suite("In a process of its own", .serialized)
enum OwnProcess {}
