// SPDX-License-Identifier: Apache-2.0

import BatonMessages
import BatonTransport

/// An application of this user that runs and has registered.
@dynamicMemberLookup
struct RunningApplication: Sendable {
    let declaration: ApplicationDeclaration
    let connection: Connection

    /// - Throws: what ``ApplicationDeclaration/init(_:)`` does.
    init(_ request: WireRegisterRequest, on connection: Connection) throws(HandoffError) {
        declaration = try ApplicationDeclaration(request)
        self.connection = connection
    }

    subscript<Value>(dynamicMember member: KeyPath<ApplicationDeclaration, Value>) -> Value {
        declaration[keyPath: member]
    }
}
