// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// The name of a document as a label: bytes, never a path.
///
/// A label that came from a peer is one component that may be created in a folder, or it is refused. It says nothing
/// about where the folder is.
package struct DocumentLabel: Sendable, Hashable, CustomStringConvertible {
    /// The most bytes that a name may have: Linux's NAME_MAX, which its common file systems share.
    package static let maximumLength = 255

    /// The name: 1 to 255 bytes without `/` and NUL, and neither `.` nor `..`. No encoding is implied.
    package let bytes: [UInt8]

    /// A label from bytes that somebody else chose.
    ///
    /// Everything that Linux allows in a name is kept, a leading dot as well.
    ///
    /// - Throws: `badName`.
    package init(_ bytes: some Collection<UInt8>) throws(DocumentError) {
        let bytes = Array(bytes.prefix(Self.maximumLength + 1))
        let dot = UInt8(ascii: ".")
        guard
            !bytes.isEmpty, bytes.count <= Self.maximumLength, bytes != [dot], bytes != [dot, dot],
            !bytes.contains(UInt8(ascii: "/")), !bytes.contains(0)
        else {
            throw DocumentError(.badName, NameDisplay.escaped(bytes))
        }
        self.bytes = bytes
    }

    /// A label of bytes of which the caller knows that they are one.
    init(unchecked bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The label of a path of this machine: its last component.
    ///
    /// - Throws: `noName` for a path without one, such as `/`.
    package init(of path: FilePath) throws(DocumentError) {
        guard let name = path.lastComponent, name.kind == .regular else { throw DocumentError(.noName, path.displayed) }
        try self.init(name.withPlatformString { Array(bytesOf: $0) })
    }

    /// The name with a number, as file managers write it: `film (2).bin`, `photos (2)` for a folder.
    ///
    /// The number stands before the last dot of a file's name, if what follows looks like an extension: at most 16
    /// bytes. A long name is cut between two characters, so that the result has at most ``maximumLength`` bytes.
    func numbered(_ number: Int, isFolder: Bool) -> DocumentLabel {
        let dot = isFolder ? nil : bytes.dropFirst().lastIndex(of: UInt8(ascii: "."))
        let end = dot.map { bytes.count - $0 <= 17 ? $0 : bytes.count } ?? bytes.count
        let suffix = Array(" (\(number))".utf8) + bytes[end...]
        var cut = min(end, Self.maximumLength - suffix.count)
        // A byte 10xxxxxx goes on with a character of UTF-8.
        while cut > 0, cut < end, bytes[cut] & 0xC0 == 0x80 { cut -= 1 }
        return DocumentLabel(unchecked: bytes[..<cut] + suffix)
    }

    /// The name for people, escaped.
    package var description: String { NameDisplay.escaped(bytes) }

    /// The name as a path component.
    var component: FilePath.Component? {
        withCString { FilePath.Component(platformString: $0) }
    }

    /// Calls `body` with the name as a C string.
    func withCString<Result, Failure: Error>(
        _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let terminated = bytes.map { CChar(bitPattern: $0) } + [0]
        return try terminated.withUnsafeBufferPointer { (characters) throws(Failure) -> Result in
            guard let start = characters.baseAddress else {
                preconditionFailure("an array of one or more has an address")
            }
            return try body(start)
        }
    }
}

extension FilePath {
    /// The path as the system has it.
    package var bytes: [UInt8] { withPlatformString { Array(bytesOf: $0) } }

    /// The path for people, escaped.
    var displayed: String { NameDisplay.escaped(bytes) }
}

extension [UInt8] {
    /// The bytes of a C string, without its end.
    init(bytesOf string: UnsafePointer<CChar>) {
        var end = string
        while end.pointee != 0 { end += 1 }
        self = UnsafeBufferPointer(start: string, count: end - string).map { UInt8(bitPattern: $0) }
    }
}
