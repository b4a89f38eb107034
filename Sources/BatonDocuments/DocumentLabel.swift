// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
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
        return DocumentLabel(unchecked: Self.cut(bytes[..<end], Self.maximumLength - suffix.count) + suffix)
    }

    /// As many of these bytes, up to a limit, as end with a character: some file systems refuse others.
    static func cut(_ bytes: ArraySlice<UInt8>, _ limit: Int) -> ArraySlice<UInt8> {
        var cut = bytes.prefix(limit)
        // A byte 10xxxxxx goes on with a character of UTF-8.
        while !cut.isEmpty, cut.endIndex < bytes.endIndex, bytes[cut.endIndex] & 0xC0 == 0x80 { cut.removeLast() }
        return cut
    }

    /// The name for people, escaped.
    package var description: String { NameDisplay.escaped(bytes) }

    var component: FilePath.Component? {
        (bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { characters in
            characters.baseAddress.flatMap { FilePath.Component(platformString: $0) }
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

/// How names that came from a disk or from a peer are shown to people.
///
/// A file's name is bytes. Shown raw it could move the cursor, change the terminal's title or, with the controls of
/// right-to-left writing, pretend another extension.
package enum NameDisplay {
    /// How many marks one character may have on it: 5. Scripts stack four at the most; more of them leave their line.
    package static let markLimit = 5

    /// The name with every character escaped that does not show as itself.
    ///
    /// Characters that are unsafe to show, controls and those of no meaning among them, and marks beyond ``markLimit``
    /// become `\u{…}`, bytes that are no UTF-8 become `\xNN`, and a backslash is doubled, so that the result is
    /// unambiguous. The joiners and variation selectors that scripts and emoji need stay.
    ///
    /// - Parameter isSentence: names in it are escaped by now, so that a backslash stays as it is.
    package static func escaped(_ bytes: some Collection<UInt8>, isSentence: Bool = false) -> String {
        var shown = ""
        var marks = 0
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var position = bytes.startIndex
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                marks = scalar.isMark ? marks + 1 : 0
                if scalar == "\\", !isSentence {
                    shown += "\\\\"
                } else if scalar.isUnsafeToShow || marks > markLimit {
                    shown += "\\u{\(String(scalar.value, radix: 16))}"
                } else {
                    shown.unicodeScalars.append(scalar)
                }
                bytes.formIndex(&position, offsetBy: encoded.count)
            case .error(let length):
                for _ in 0..<length {
                    let byte = bytes[position]
                    shown += byte < 16 ? "\\x0" : "\\x"
                    shown += String(byte, radix: 16)
                    bytes.formIndex(after: &position)
                }
            case .emptyInput:
                return shown
            }
        }
    }
}

extension Unicode.Scalar {
    fileprivate var isMark: Bool {
        let category = properties.generalCategory
        return category == .nonspacingMark || category == .enclosingMark
    }
}
