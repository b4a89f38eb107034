// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

/// What is taken down beside the tests. The process does not end before it.
enum LabDemolition {
    private static let works = DispatchGroup()
    /// Once: a lab goes down in 5 s, and there are no more than tests at a time.
    private static let isAwaited: Void = { _ = atexit { _ = LabDemolition.works.wait(timeout: .now() + 60) } }()

    static func begin(_ work: @escaping @Sendable () -> Void) {
        isAwaited
        works.enter()
        Thread.detachNewThread {
            work()
            works.leave()
        }
    }
}
