import BatonAccount
import BatonApplications
import BatonMessages
import BatonTransport

/// An application of this user that runs and has registered.
struct RunningApplication: Sendable {
    /// The most bytes of an identifier, of a name and of a team.
    static let nameBound = 255
    /// The most types that one application continues.
    static let typesBound = 128

    let identifier: String
    let name: String
    let team: String
    let types: Set<String>
    let versions: ReadableVersions
    let isInFront: Bool
    let connection: Connection

    /// What an application says of itself, checked.
    ///
    /// - Throws: ``HandoffError`` with `invalidRequest` and a sentence about the first thing that is wrong.
    init(_ request: WireRegisterRequest, on connection: Connection) throws(HandoffError) {
        identifier = request.identifier
        name = request.name.isEmpty ? request.identifier : request.name
        team = request.team
        isInFront = request.inFront
        self.connection = connection
        guard !identifier.isEmpty, identifier.utf8.count <= Self.nameBound,
            identifier.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
        else {
            throw HandoffError(
                .invalidRequest, "an application's identifier is 1 to 255 characters, as in org.example.editor")
        }
        guard name.utf8.count <= Self.nameBound, team.utf8.count <= Self.nameBound else {
            throw HandoffError(.invalidRequest, "an application's name and team may have \(Self.nameBound) bytes each")
        }
        guard request.types.count <= Self.typesBound else {
            throw HandoffError(.invalidRequest, "an application may continue \(Self.typesBound) types of activities")
        }
        var versions: [String: ClosedRange<UInt32>] = [:]
        for type in request.types {
            guard !type.type.isEmpty, type.type.utf8.count <= AdvertisedActivity.maximumTypeCount else {
                throw HandoffError(
                    .invalidRequest, "a type of activity has 1 to \(AdvertisedActivity.maximumTypeCount) bytes")
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

    /// The same as choosing needs it.
    var choice: ApplicationChoice.Running {
        ApplicationChoice.Running(identifier: identifier, name: name, team: team, activityTypes: types)
    }
}
