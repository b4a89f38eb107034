// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Testing

extension Trait where Self == ConditionTrait {
    /// Runs a suite only where this machine allows lab hosts.
    ///
    /// The name of such a suite begins with `Lab`: `Scripts/check` gives it processes of its own.
    package static var lab: Self {
        .enabled(if: Lab.unavailableReason == nil, "\(Lab.unavailableReason ?? "")")
    }

    /// Runs a test only in `Scripts/check nightly`, because it takes long or compares speeds.
    package static var nightly: Self {
        .enabled(
            if: ProcessInfo.processInfo.environment["BATON_NIGHTLY"] != nil, "Scripts/check nightly runs them")
    }
}
