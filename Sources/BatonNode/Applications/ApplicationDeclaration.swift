// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonMessages

/// The checked statements of an application about itself when it registers.
struct ApplicationDeclaration: Sendable {
    /// The most bytes of a name and of a team.
    static let nameBound = 255
    /// The most types that one application continues.
    static let typesBound = 128

    let identifier: String
    let name: String
    let team: String
    let types: Set<String>
    let versions: ReadableVersions
    let isInFront: Bool

    /// - Throws: ``HandoffError`` with `invalidRequest` and a sentence about the first thing that is wrong.
    init(_ request: WireRegisterRequest) throws(HandoffError) {
        identifier = request.identifier
        name = request.name.isEmpty ? request.identifier : request.name
        team = request.team
        isInFront = request.inFront
        guard DottedName.isIdentifier(identifier) else {
            throw HandoffError(
                .invalidRequest,
                "an application's identifier has up to \(ManifestBounds.identifier) letters, digits, dots, hyphens and "
                    + "underscores, as in org.example.editor")
        }
        guard name.utf8.count <= Self.nameBound, team.utf8.count <= Self.nameBound else {
            throw HandoffError(.invalidRequest, "an application's name and team may have \(Self.nameBound) bytes each")
        }
        guard request.types.count <= Self.typesBound else {
            throw HandoffError(.invalidRequest, "an application may continue \(Self.typesBound) types of activities")
        }
        var versions: [String: ClosedRange<UInt32>] = [:]
        for type in request.types {
            guard DottedName.isActivityType(type.type) else {
                throw HandoffError(
                    .invalidRequest,
                    "a type of activity has up to \(ManifestBounds.typeName) letters, digits, dots, hyphens and "
                        + "underscores")
            }
            guard type.newestVersion != 0 else { continue }
            guard type.oldestVersion <= type.newestVersion else {
                throw HandoffError(.invalidRequest, "the oldest version of \(type.type) is above the newest")
            }
            versions[type.type] = type.oldestVersion...type.newestVersion
        }
        types = Set(request.types.map(\.type))
        self.versions = ReadableVersions(versions)
    }
}
