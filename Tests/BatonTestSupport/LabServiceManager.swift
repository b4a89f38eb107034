// SPDX-License-Identifier: Apache-2.0

import Foundation

/// `systemd --user` on a lab host or on this machine, by `service-manager.sh`.
package enum LabServiceManager {
    /// The script, for bash.
    package static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "service-manager.sh").path

    /// Why there can be no manager here, as a sentence; nil when there can be one.
    package static let unavailableReason: String? = {
        do {
            let folder = try ScratchFolder("manager")
            defer { folder.remove() }
            let (ending, said) = try ChildProcess.run(
                ["env", "XDG_RUNTIME_DIR=\(folder.path)", "timeout", "30", "bash", script], error: .null)
            guard ending != .exited(0) else { return nil }
            let reason = said.trimmingCharacters(in: .whitespacesAndNewlines)
            return reason.isEmpty ? "systemd --user does not run here" : reason
        } catch {
            return "\(error)"
        }
    }()
}
