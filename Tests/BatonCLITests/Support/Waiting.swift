// SPDX-License-Identifier: Apache-2.0

/// A condition that a test waits for, until a deadline.
func eventually(
    within limit: Duration = .seconds(20), _ condition: @Sendable () async throws -> Bool
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
        if try await condition() { return true }
        try? await Task.sleep(for: .milliseconds(20))
    }
    return false
}
