// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Event loops that share the connections of a process in turn.
///
/// The loops live as long as the group or anything that uses them.
package final class EventLoopGroup: Sendable {
    /// The loops, at least one.
    package let loops: [EventLoop]

    private let turn = Atomic<UInt>(0)

    /// Makes the loops.
    ///
    /// - Parameters:
    ///   - name: the loops are called `name-0`, `name-1`, ….
    ///   - count: the number of loops, 1 to 64; a value outside is moved to the nearest.
    package init(name: String, count: Int) {
        let count = min(max(count, 1), 64)
        loops = (0..<count).map { EventLoop(name: "\(name)-\($0)") }
    }

    /// The next loop, round robin. Callable from anywhere.
    package func next() -> EventLoop {
        let number = turn.wrappingAdd(1, ordering: .relaxed).oldValue
        return loops[Int(number % UInt(loops.count))]
    }
}
