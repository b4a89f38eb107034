// SPDX-License-Identifier: Apache-2.0

import SystemPackage

@testable import BatonAccount
@testable import BatonDocuments

/// Names that come from elsewhere: of documents, and of devices.
enum NamesTarget: FuzzTarget {
    static let name = "names"
    static let maximumLength = 600

    static func run(_ bytes: UnsafeRawBufferPointer) {
        let name = Array(bytes)
        let shown = NameDisplay.escaped(name)
        expect(!shown.unicodeScalars.contains(where: acts), "a terminal would act on \(shown)")
        expect(shown.utf8.count <= 12 * name.count, "the name grew to \(shown.utf8.count) bytes")
        if let label = try? DocumentLabel(name) { checkLabel(label, name) }
        checkDeviceName(String(decoding: name, as: UTF8.self))
    }

    /// Whether a character moves, hides or turns what stands around it. Not by NameDisplay's own rule.
    private static func acts(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF: true
        case _: false
        }
    }

    private static func checkLabel(_ label: DocumentLabel, _ name: [UInt8]) {
        expect(label.bytes == name && (1...255).contains(name.count), "the label is another name")
        expect(label.component?.kind == .regular, "the label is no name of a file: \(label)")
        expect(FilePath("/inbox").appending(label.component.map { [$0] } ?? []).components.count == 2, "it is a path")
        expect(!name.contains(0), "the system would read only the beginning of the name")
        let part = PartFileName.make(for: label, tag: PartFileName.makeTag())
        expect((try? DocumentLabel(part)) != nil && part.first == 46, "the part file has no good name")
    }

    private static func checkDeviceName(_ text: String) {
        let name = DeviceName.name(ofHost: text)
        expect((1...DeviceName.maximumCount).contains(name.utf8.count), "a device name of \(name.utf8.count) bytes")
        expect((try? DeviceName.validated(name)) == name, "\(name) is no device name")
        if let chosen = try? DeviceName.validated(text) {
            expect((try? DeviceName.validated(chosen)) == chosen, "\(chosen) is no device name")
        }
    }

    static func seeds() -> [[UInt8]] {
        let texts = [
            "note.txt", ".bashrc", "..", ".", "", "a/b", "../../etc/passwd", "a\u{0}b", "\u{1B}[2J\u{7}",
            "photo\u{202E}gpj.exe",
            "naïve 👩‍👩‍👧‍👦.txt", "می‌خواهم", "back\\slash", " laptop ", "host.example.org", "\u{2028}\u{FEFF}\u{061C}",
            String(repeating: "n", count: 255), String(repeating: "ü", count: 128), String(repeating: "👍", count: 62),
        ]
        return texts.map { Array($0.utf8) } + [[0xFF, 0xFE, 0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x9F, 0x91]]
    }
}
