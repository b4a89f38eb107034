// SPDX-License-Identifier: Apache-2.0

/// Waits until a condition holds, and returns false when the time is over first.
package func eventually(
    within timeout: Duration = .seconds(60), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let deadline = ContinuousClock.now + timeout
    while true {
        // The time is read first: a test that was itself held up for long looks once more.
        let isLate = ContinuousClock.now >= deadline
        if try await condition() { return true }
        if isLate { return false }
        try? await Task.sleep(for: .milliseconds(5))
        if Task.isCancelled { return false }
    }
}

/// Waits until a condition holds, and throws when the time is over first.
///
/// - Parameter what: the condition in words. It may say how things are when the time is over.
package func eventually(
    _ what: @autoclosure () -> String, within timeout: Duration = .seconds(60), file: String = #fileID,
    line: Int = #line, _ condition: () async throws -> Bool
) async throws {
    guard try await eventually(within: timeout, condition) else {
        throw Lab.Failure(description: "it never was that \(what()) (\(file):\(line))")
    }
}
