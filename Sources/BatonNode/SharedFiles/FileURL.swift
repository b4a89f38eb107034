// SPDX-License-Identifier: Apache-2.0

import BatonMessages

/// A URL of a file: by its path on this device, or as nodes name it to each other.
enum FileURL: Sendable, Hashable {
    /// `file:///path`: an absolute path of this device as the system has it. A name is bytes, which need not be text.
    case path([UInt8], suffix: String = "")
    /// `baton-root:///NAME/relative/path`: in a folder that both devices have.
    case root(Place, suffix: String)
    /// `baton-document:`: the document of the activity. With a place, as in `baton-document:///NAME/relative/path`,
    /// where who shares that folder has it already.
    case document(Place?, suffix: String)

    enum Scheme: String {
        case file
        case root = "baton-root"
        case document = "baton-document"

        /// The scheme of a URL, in whatever case and however it goes on; nil for all others.
        init?(of url: String) {
            // By bytes: as a character, a colon with a combining mark behind it is another one.
            guard let colon = url.utf8.firstIndex(of: UInt8(ascii: ":")), let name = String(url.utf8[..<colon]) else {
                return nil
            }
            self.init(rawValue: name.lowercased())
        }
    }

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

    /// - Parameter text: the URL. The rest after its path, from the first `?` or `#` on, is passed on unchanged.
    /// - Returns: nil for another scheme and for a place that no node makes. Nil also for a file of another host, a
    ///   path that is not absolute, a byte that no name may have, and an escape that is none.
    init?(_ text: String) {
        guard let scheme = Scheme(of: text) else { return nil }
        // By bytes: as a character, a `?` with a combining mark behind it is another one.
        let rest = text.utf8.dropFirst(scheme.rawValue.utf8.count + 1)
        let end = rest.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? rest.endIndex
        guard let suffix = String(rest[end...]) else { return nil }
        let path = rest[..<end]
        if scheme == .document, path.isEmpty {
            self = .document(nil, suffix: suffix)
        } else if scheme == .file, let path = Self.localPath(path) {
            self = .path(path, suffix: suffix)
        } else if scheme != .file, let place = Place(path) {
            self = scheme == .root ? .root(place, suffix: suffix) : .document(place, suffix: suffix)
        } else {
            return nil
        }
    }

    /// The path of a `file:` URL of this device.
    private static func localPath(_ path: Substring.UTF8View) -> [UInt8]? {
        var path = path
        if path.starts(with: "//".utf8) {
            path = path.dropFirst(2)
            let host = path.prefix { $0 != UInt8(ascii: "/") }
            guard host.isEmpty || String(host)?.lowercased() == "localhost" else { return nil }
            path = path.dropFirst(host.count)
        }
        guard let decoded = PercentCoding.decode(path), decoded.first == UInt8(ascii: "/"), !decoded.contains(0) else {
            return nil
        }
        return decoded
    }

    var text: String {
        switch self {
        case .path(let path, let suffix): Scheme.file.rawValue + "://" + PercentCoding.encode(path) + suffix
        case .root(let place, let suffix): Scheme.root.rawValue + ":" + place.text + suffix
        case .document(let place, let suffix): Scheme.document.rawValue + ":" + (place?.text ?? "") + suffix
        }
    }
}
