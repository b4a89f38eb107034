// SPDX-License-Identifier: Apache-2.0

/// The pauses between attempts. Each is twice as long as the one before.
package struct RetryPolicy: Sendable {
    let first: Duration
    let attempts: Int

    /// Returns the pause after so many failures in a row; nil if that was the last attempt.
    func pause(after failures: Int) -> Duration? {
        failures <= attempts ? first * (1 << (failures - 1)) : nil
    }
}
