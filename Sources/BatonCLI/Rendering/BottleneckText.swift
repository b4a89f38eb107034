// SPDX-License-Identifier: Apache-2.0

import BatonMessages

extension WireTransferBottleneck {
    /// What a transfer waits for, for people and for JSON.
    var text: String {
        switch self {
        case .link: "link"
        case .diskHere: "disk here"
        case .diskThere: "disk there"
        case .processorHere: "CPU here"
        case .processorThere: "CPU there"
        case .unknown, .UNRECOGNIZED: "unknown"
        }
    }
}
