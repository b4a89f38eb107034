// SPDX-License-Identifier: Apache-2.0

import BatonMessages

extension WireTransferBottleneck {
    /// What a transfer waits for, for the progress line.
    var phrase: String {
        switch self {
        case .link: "limited by the network"
        case .diskHere: "limited by this disk"
        case .diskThere: "limited by the other disk"
        case .processorHere: "limited by this CPU"
        case .processorThere: "limited by the other CPU"
        case .unknown, .UNRECOGNIZED: "limit unknown"
        }
    }

    /// The name of the bottleneck for JSON.
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
