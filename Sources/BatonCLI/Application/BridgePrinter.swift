// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Synchronization
import SystemPackage

/// Prints events on standard output, one line each. It waits while the program does not read.
final class BridgePrinter: Sendable {
    /// Events that may wait for a program that does not read: 256. A further one ends the bridge. An event has at most
    /// 64 KiB of a stream, or a user info of 48 KB, which has at most 512 KiB as JSON.
    static let bound = 256

    private let output: ByteChannel
    private let waiting = Atomic(0)
    private let onFailure: @Sendable (CommandError) -> Void

    /// - Parameter onFailure: called when nothing can be printed any more.
    init(to output: ByteChannel, onFailure: @escaping @Sendable (CommandError) -> Void) {
        self.output = output
        self.onFailure = onFailure
    }

    /// Prints an event. It returns when the event is written, or cannot be.
    func print(_ event: BridgeEvent) async {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.bound else {
            waiting.subtract(1, ordering: .relaxed)
            return onFailure(.failed("the program behind standard output has not read \(Self.bound) messages"))
        }
        defer { waiting.subtract(1, ordering: .relaxed) }
        do throws(Errno) {
            try await output.write(Buffer(copying: Array((event.text + "\n").utf8)))
        } catch {
            onFailure(.failed("standard output cannot be written to: \(error)"))
        }
    }
}
