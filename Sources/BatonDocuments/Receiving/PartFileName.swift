// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Names of part files: `.NAME.XXXXXXXX.baton-part`.
enum PartFileName {
    static let suffix = ".baton-part"
    private static let letters = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Eight random letters: 40 bits, so that nobody can put something in the way.
    static func makeTag() -> String {
        String(decoding: (0..<8).map { _ in letters[Int.random(in: 0..<letters.count)] }, as: UTF8.self)
    }

    /// The name, at most 255 bytes: the label's part is cut, between characters, to what fits.
    static func make(for label: DocumentLabel, tag: String) -> [UInt8] {
        let ending = Array(".\(tag)\(suffix)".utf8)
        var stem = label.bytes.prefix(DocumentLabel.maximumLength - 1 - ending.count)
        if stem.count < label.bytes.count {
            // Some file systems refuse a name that ends within a character; three steps back leave any of UTF-8's.
            var steps = 0
            while steps < 3, label.bytes[stem.endIndex] & 0xC0 == 0x80, !stem.isEmpty {
                stem.removeLast()
                steps += 1
            }
        }
        return [UInt8(ascii: ".")] + stem + ending
    }
}

/// The bits that the user does not want on new files.
enum ProcessUmask {
    /// Read from the kernel, because umask(2) can only tell by setting it for the whole process. 0o077 where that is
    /// not to be had: the safe side.
    static var current: mode_t {
        let bytes = (try? SystemCalls.contents(of: FilePath("/proc/self/status"), limit: 4096)) ?? []
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        let key = Array("Umask:".utf8)
        guard let line = lines.first(where: { $0.starts(with: key) }) else { return 0o077 }
        let digits = line.dropFirst(key.count).filter { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "7") }
        return mode_t(String(decoding: digits, as: UTF8.self), radix: 8) ?? 0o077
    }
}
