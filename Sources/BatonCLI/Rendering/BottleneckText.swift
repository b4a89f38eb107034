// SPDX-License-Identifier: Apache-2.0

import BatonMessages

extension WireTransferBottleneck {
    /// The name of the bottleneck, for people and for JSON.
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
