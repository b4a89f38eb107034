// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Synchronization
import SystemPackage

/// Prints events on standard output, one line each, and waits while the program does not read.
final class BridgePrinter: Sendable {
    /// Events that may wait for a program that does not read; with one more the bridge ends. Each has at most 64 KiB of
    /// a stream's bytes, or a user info of 48 KB, which no JSON makes larger than 512 KiB.
    static let bound = 256

    private let output: ByteChannel
    private let waiting = Atomic(0)
    private let onTrouble: @Sendable (CommandError) -> Void

    /// - Parameter onTrouble: called when nothing can be printed any more.
    init(to output: ByteChannel, onTrouble: @escaping @Sendable (CommandError) -> Void) {
        self.output = output
        self.onTrouble = onTrouble
    }

    /// Prints an event; returns when it is written, or cannot be.
    func print(_ event: BridgeEvent) async {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.bound else {
            waiting.subtract(1, ordering: .relaxed)
            return onTrouble(.failed("the program behind standard output has not read \(Self.bound) messages"))
        }
        defer { waiting.subtract(1, ordering: .relaxed) }
        do throws(Errno) {
            try await output.write(Buffer(copying: Array((event.text + "\n").utf8)))
        } catch {
            onTrouble(.failed("standard output cannot be written to: \(error)"))
        }
    }
}
