// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// A file as nodes name it to each other, in the place of a URL that means something on one device only.
enum CarriedURL: Sendable, Hashable {
    /// `baton-root:///NAME/relative/path`: in a folder that both devices have.
    case root(Place, suffix: String)
    /// `baton-document:`: the document of the activity. With a place, as in `baton-document:///NAME/relative/path`,
    /// where who shares that folder has it already.
    case document(Place?, suffix: String)

    /// A place in a shared folder.
    struct Place: Sendable, Hashable {
        /// The folder's name.
        let root: String
        /// Names from there on, each without `/` and NUL, and neither `.` nor `..`; none is the folder itself.
        let components: [[UInt8]]
        /// A slash follows, as applications write folders.
        var isFolder = false

        /// `///NAME/relative/path`
        fileprivate var text: String {
            ([PercentCoding.encode(root.utf8)] + components.map(PercentCoding.encode)).reduce("//") { $0 + "/" + $1 }
                + (isFolder ? "/" : "")
        }

        /// The path of an absolute URL without authority.
        fileprivate init?(_ path: Substring.UTF8View) {
            guard path.starts(with: "///".utf8) else { return nil }
            var parts = path.dropFirst(3).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            let isFolder = parts.count > 1 && parts.last?.isEmpty == true
            if isFolder { parts.removeLast() }
            var components: [[UInt8]] = []
            for part in parts {
                guard let component = PercentCoding.decode(part), Self.isName(component) else { return nil }
                components.append(component)
            }
            guard let name = components.first.flatMap({ String(validating: $0, as: UTF8.self) }),
                SharedRoots.isName(name)
            else { return nil }
            self.init(root: name, components: Array(components.dropFirst()), isFolder: isFolder)
        }

        init(root: String, components: [[UInt8]], isFolder: Bool = false) {
            self.root = root
            self.components = components
            self.isFolder = isFolder
        }

        private static func isName(_ bytes: [UInt8]) -> Bool {
            let dot = UInt8(ascii: ".")
            return !bytes.isEmpty && bytes != [dot] && bytes != [dot, dot] && !bytes.contains(0)
                && !bytes.contains(UInt8(ascii: "/"))
        }
    }

    private static let rootScheme = "baton-root"
    private static let documentScheme = "baton-document"

    /// Whether a URL has one of the two schemes, however it goes on.
    static func isCarried(_ text: String) -> Bool {
        text.isOfScheme(rootScheme) || text.isOfScheme(documentScheme)
    }

    /// - Returns: `nil` where it has another scheme, or is none that a node makes.
    init?(_ text: String) {
        let scheme = [Self.rootScheme, Self.documentScheme].first(where: text.isOfScheme)
        guard let scheme else { return nil }
        // By bytes: as a character, a `?` with a combining mark behind it is another one.
        let rest = text.utf8.dropFirst(scheme.utf8.count + 1)
        let end = rest.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? rest.endIndex
        guard let suffix = String(rest[end...]) else { return nil }
        let path = rest[..<end]
        if scheme == Self.documentScheme, path.isEmpty {
            self = .document(nil, suffix: suffix)
            return
        }
        guard let place = Place(path) else { return nil }
        self = scheme == Self.rootScheme ? .root(place, suffix: suffix) : .document(place, suffix: suffix)
    }

    var text: String {
        switch self {
        case .root(let place, let suffix): Self.rootScheme + ":" + place.text + suffix
        case .document(let place, let suffix): Self.documentScheme + ":" + (place?.text ?? "") + suffix
        }
    }
}
