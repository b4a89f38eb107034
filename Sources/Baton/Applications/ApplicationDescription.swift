// SPDX-License-Identifier: Apache-2.0

/// The identity of an application, for its node and for people.
extension Application {
    public struct Description: Sendable, Hashable {
        /// The most bytes of an identifier, a name or a team.
        public static let maximumNameSize = 255
        /// The most types of activity that an application continues.
        public static let maximumTypeCount = 128

        /// Which application it is, in reverse DNS notation, such as `org.example.notes`: ASCII without spaces and
        /// slashes.
        public let identifier: String
        /// The name that users read.
        public let name: String
        /// Applications of the same team continue each other's activities. A label, not a secret: any process of the
        /// user may state it.
        public let team: String
        /// The activities that it continues.
        public let continues: [ContinuedActivityType]

        /// - Parameters:
        ///   - identifier: 1 to 255 printable ASCII characters without space and `/`.
        ///   - name: at most 255 bytes; empty, the default: the identifier.
        ///   - team: at most 255 bytes; empty, the default: no team.
        ///   - continues: at most 128 types, each once; none by default.
        /// - Throws: ``ApplicationError``, which names the value that is out of bounds.
        public init(
            identifier: String, name: String = "", team: String = "", continues: [ContinuedActivityType] = []
        ) throws(ApplicationError) {
            guard !identifier.isEmpty,
                identifier.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
            else { throw ApplicationError("“\(identifier)” is no identifier, such as org.example.notes") }
            for (what, text) in [("identifier", identifier), ("name", name), ("team", team)] {
                guard text.utf8.count <= Self.maximumNameSize, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
                else {
                    throw ApplicationError(
                        "the \(what) of an application takes at most \(Self.maximumNameSize) bytes and no control"
                            + " characters")
                }
            }
            guard continues.count <= Self.maximumTypeCount else {
                throw ApplicationError(
                    "an application continues at most \(Self.maximumTypeCount) types, and these are \(continues.count)")
            }
            guard Set(continues.map(\.type)).count == continues.count else {
                throw ApplicationError("a type of activity is declared twice")
            }
            self.identifier = identifier
            self.name = name.isEmpty ? identifier : name
            self.team = team
            self.continues = continues
        }
    }
}

/// A type of activity that an application continues, and the versions of it that it can read.
public struct ContinuedActivityType: Sendable, Hashable {
    public let type: String
    /// The readable versions (``UserActivity/version``); `nil`: any.
    public let versions: ClosedRange<UInt32>?

    /// - Parameters:
    ///   - type: 1 to 96 ASCII letters, digits, dots, hyphens and underscores.
    ///   - versions: up to one that is not 0; `nil`, the default: any.
    /// - Throws: ``ApplicationError`` for any other type.
    public init(_ type: String, versions: ClosedRange<UInt32>? = nil) throws(ApplicationError) {
        guard UserActivity.isType(type) else { throw ApplicationError("“\(type)” is no type of activity") }
        guard versions?.upperBound != 0 else { throw ApplicationError("versions are counted from 1") }
        self.type = type
        self.versions = versions
    }
}

/// A mistake in the description of an application, or in the place of its node.
public struct ApplicationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// One sentence for people, without a full stop at the end.
    public let message: String

    init(_ message: String) {
        self.message = message
    }

    public var description: String { message }
}
