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
/// bytes that are not UTF-8. In an argument that is not UTF-8, ``commandLine()`` therefore writes each byte above 127
/// as one character: U+10FF00 plus the byte. An argument that contains one of these characters is written in the same
/// way, so that no two arguments become equal.
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
        if let text = String(validating: bytes, as: UTF8.self),
            text.unicodeScalars.allSatisfy({ $0.value < firstByte })
        {
            return text
        }
        // ASCII stays, so that an option is still one.
        let scalars = bytes.map { Unicode.Scalar($0 < 0x80 ? UInt32($0) : firstByte + UInt32($0)) ?? "\u{FFFD}" }
        return String(String.UnicodeScalarView(scalars))
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
