// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import BatonApplications
import BatonDocuments
import Glibc
import SystemPackage

/// One argument of the command line, as the bytes that were given.
///
/// The name of a file is bytes, and need not be UTF-8. The argument parser knows only strings, in which Swift replaces
/// bytes that are not UTF-8. ``commandLine()`` therefore writes each such byte as one character: U+10FF00 plus the
/// byte. An argument that contains one of these characters is written in the same way, so that no two arguments become
/// equal.
struct CommandArgument: ExpressibleByArgument, Sendable, Equatable {
    private static let firstByte: UInt32 = 0x10FF00

    /// The argument as the parser carries it.
    let encoded: String

    /// Refuses an empty argument: a shell makes one of a variable that is not set.
    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        encoded = argument
    }

    /// Takes the bytes of an argument; nil if there are none.
    init?(bytes: some Collection<UInt8>) {
        self.init(argument: Self.encode(bytes))
    }

    private init(encoded: String) {
        self.encoded = encoded
    }

    /// The bytes that were given.
    var bytes: [UInt8] {
        encoded.unicodeScalars.flatMap { scalar in
            scalar.value >= Self.firstByte
                ? [UInt8(truncatingIfNeeded: scalar.value - Self.firstByte)] : Array(String(scalar).utf8)
        }
    }

    /// The argument as text; bytes that are not UTF-8 become U+FFFD.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The argument as a path, byte for byte.
    var path: FilePath { FilePath(bytes: bytes) }

    /// Whether the argument is only white space.
    var isBlank: Bool { encoded.allSatisfy(\.isWhitespace) }

    /// Whether the argument begins with an ASCII character.
    func hasPrefix(_ character: Unicode.Scalar) -> Bool { encoded.unicodeScalars.first == character }

    /// The argument without its first character; nil if nothing is left.
    func dropFirst() -> CommandArgument? {
        CommandArgument(argument: String(encoded.unicodeScalars.dropFirst()))
    }

    /// Splits a command line into words by the shell's rules for quotes. Words may be empty.
    func words() throws(CommandLineSplitter.Problem) -> [CommandArgument] {
        try CommandLineSplitter.split(encoded).map { CommandArgument(encoded: $0) }
    }

    /// The arguments of this process, without its name, for the argument parser.
    static func commandLine() -> [String] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { pointer in
                encode(UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
            }
        }
    }

    private static func encode(_ bytes: some Collection<UInt8>) -> String {
        var text = String.UnicodeScalarView()
        func append(_ bytes: some Sequence<UInt8>) {
            for byte in bytes { text.append(Unicode.Scalar(firstByte + UInt32(byte)) ?? "\u{FFFD}") }
        }
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var rest = bytes[...]
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .emptyInput: return String(text)
            case .valid(let valid):
                let scalar = Unicode.UTF8.decode(valid)
                if scalar.value >= firstByte { append(rest.prefix(valid.count)) } else { text.append(scalar) }
                rest = rest.dropFirst(valid.count)
            case .error(let length):
                append(rest.prefix(length))
                rest = rest.dropFirst(length)
            }
        }
    }
}

extension CommandArgument {
    var deviceName: String {
        get throws(AccountError) {
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw .invalidDeviceName(reason: "it is not UTF-8")
            }
            return try DeviceName.validated(text)
        }
    }
}

extension FilePath {
    /// A path of bytes. A NUL ends it.
    init(bytes: some Collection<UInt8>) {
        self.init(platformString: bytes.map { CChar(bitPattern: $0) } + [0])
    }

    /// The path as it is shown to people, with unsafe characters escaped.
    var shown: String { SafeText.escaped(path: bytes) }
}
