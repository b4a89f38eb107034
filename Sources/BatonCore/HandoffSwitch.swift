// SPDX-License-Identifier: Apache-2.0

/// Whether the user wants Handoff at all, and for which applications not.
///
/// If it is off for the device, nothing is announced, listed or handed over in either direction. If it is off for an
/// application, nothing is announced for it or handed over by it or to it. Activities that only such applications here
/// could continue are not listed.
package struct HandoffSwitch: Sendable, Hashable {
    /// Applications that may be switched off; one more is refused.
    package static let bound = 256

    /// Of the device as a whole.
    package var isOn: Bool
    /// The identifiers of applications for which it is off.
    package var offApplications: Set<String>
    /// A sentence about the file that keeps the switch, if it cannot be read. The user's choice is not known then, and
    /// Handoff is off.
    package var problem: String?

    package init(isOn: Bool = true, offApplications: Set<String> = [], problem: String? = nil) {
        self.isOn = isOn
        self.offApplications = offApplications
        self.problem = problem
    }

    /// Whether an application's activities are handed over.
    ///
    /// - Parameter application: its identifier; empty for what a command offers or accepts.
    package func isOn(for application: String) -> Bool {
        isOn && !offApplications.contains(application)
    }
}
