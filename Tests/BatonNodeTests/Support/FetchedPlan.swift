// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonMessages
import SwiftProtobuf
import SystemPackage

@testable import BatonNode

extension Handoff.Plan {
    /// The plan of a user who accepts a title of a device. The test fetches the document by itself.
    static func fetching(_ title: String, from device: String, against copies: [FilePath] = []) -> Self {
        Self(
            activity: .with { $0.title = title }, origin: PeerName(id: device, name: device), candidates: [],
            destination: nil, copies: OlderCopies(copies))
    }
}
