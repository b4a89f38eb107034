// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Glibc
import SystemPackage

/// The arguments of the process as texts that lose nothing.
///
/// A file's name is bytes, and need not be UTF-8. The argument parser knows texts alone, in which such bytes are
/// repaired, that is, lost. So each byte that is no UTF-8 goes through it as a character of its own: U+10FF00 and the
/// byte. An argument that has such a character itself is taken for bytes as well, so that no two arguments make one
/// text.
enum RawArguments {
    private static let first: UInt32 = 0x10FF00

    /// What comes after the program's name.
    static func texts() -> [String] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { pointer in
                text(of: UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
            }
        }
    }

    /// Bytes as a text that ``bytes(of:)`` makes the same bytes of.
    static func text(of bytes: some Collection<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var rest = bytes[...]
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .emptyInput: return String(text)
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                if scalar.value >= first {
                    append(rest.prefix(encoded.count), to: &text)
                } else {
                    text.append(scalar)
                }
                rest = rest.dropFirst(encoded.count)
            case .error(let length):
                append(rest.prefix(length), to: &text)
                rest = rest.dropFirst(length)
            }
        }
    }

    /// The bytes of an argument.
    static func bytes(of text: String) -> [UInt8] {
        text.unicodeScalars.flatMap { scalar in
            byte(of: scalar).map { [$0] } ?? Array(String(scalar).utf8)
        }
    }

    /// An argument that is a text for people: what is no UTF-8 is repaired.
    static func repaired(_ text: String) -> String { String(decoding: bytes(of: text), as: UTF8.self) }

    private static func append(_ bytes: some Sequence<UInt8>, to text: inout String.UnicodeScalarView) {
        for byte in bytes { text.append(Unicode.Scalar(first + UInt32(byte)) ?? "\u{FFFD}") }
    }

    private static func byte(of scalar: Unicode.Scalar) -> UInt8? {
        scalar.value >= first ? UInt8(exactly: scalar.value - first) : nil
    }
}

/// A path among the arguments, as the bytes that were given.
struct PathArgument: ExpressibleByArgument, Sendable {
    let path: FilePath

    /// - Returns: nil for an empty one, as a variable of a shell that is not set makes it: no path, and not this
    ///   folder.
    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        path = FilePath(bytes: RawArguments.bytes(of: argument))
    }
}

extension FilePath {
    /// A path of bytes; a NUL ends it.
    init(bytes: some Collection<UInt8>) {
        self.init(platformString: bytes.map { CChar(bitPattern: $0) } + [0])
    }
}
