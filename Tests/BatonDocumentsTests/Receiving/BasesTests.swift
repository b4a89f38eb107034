import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// Which files of a folder are built upon where there are more of them than there can be signatures.
@Suite("Files that are built upon", .timeLimit(.minutes(5)))
struct BasesTests {
    /// A folder of small files, some of which are links to the same one: they take room in it alone.
    private struct Folder {
        let scratch: ScratchFolder
        let path: FilePath
        private(set) var builder: DocumentTree.Builder

        init() throws {
            scratch = try ScratchFolder()
            path = try scratch.makeFolder("older")
            builder = try DocumentTree.Builder(DocumentLabel(Array("folder".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder))
        }

        mutating func add(_ name: String, _ size: UInt64) throws {
            try builder.append(
                DocumentEntry(path: EntryPath(Array(name.utf8)), kind: .file(.init(size: size))))
        }

        mutating func makeSmallFiles(_ count: Int) throws {
            // No file system lets one file have all of them.
            let linkLimit = 1 << 12
            var file = path
            for number in 0..<count {
                let name = "a \(100_000 + number)"
                if number % linkLimit == 0 {
                    file = try scratch.makeFile("older/\(name)", [1])
                } else {
                    try SystemCalls.call { link(file.string, path.appending(name).string) }
                }
                try add(name, 1)
            }
        }
    }

    @Test("A large file is built upon, however many small ones come before it in a folder")
    func crowd() throws {
        var folder = try Folder()
        try folder.makeSmallFiles(Bases.limit)
        let large = try folder.scratch.makeFile("older/z", [])
        let content = DocumentFixture.content(1 << 20, seed: 64)
        // More than the largest piece.
        let size = UInt64(PieceSize.largest.maximum + content.count)
        for start in stride(from: 0, to: size, by: content.count) {
            try DocumentFixture.write(content, to: large, at: start)
        }
        try folder.add("z", size)
        let bases = Bases(of: try folder.builder.finish())
        bases.add(try OlderCopy(opening: folder.path)) { _ in true }
        #expect(bases.sizes.count == Bases.limit)
        let basis = try #require(bases.sizes.firstIndex(of: size))
        var told: UInt64 = 0
        while told < size, let batch = bases.nextSignatures() {
            guard batch.basis == basis else { continue }
            told += batch.bytes.withUnsafeBytes { bytes in
                stride(from: 0, to: bytes.count, by: PieceSignature.byteCount).reduce(0) { sum, start in
                    sum + UInt64(PieceSignature(wire: UnsafeRawBufferPointer(rebasing: bytes[start...])).length)
                }
            }
        }
        #expect(told == size)
    }

    @Test("Of what had another path, what has the size of a file that is needed comes first, and then what is large")
    func moved() throws {
        let sizes: [UInt64] = [3, 50, 700, 9000, 11_000]
        var folder = try Folder()
        for size in sizes { try folder.add("needed \(100_000 + size)", size) }
        for (number, size) in (sizes + sizes.map { $0 + 1 }).shuffled().enumerated() {
            let name = String(decoding: AsideName.ofMoved(try EntryPath(Array("\(number)".utf8))), as: UTF8.self)
            try folder.scratch.makeFile("older/\(name)", [UInt8](repeating: 1, count: Int(size)))
        }
        let bases = Bases(of: try folder.builder.finish())
        bases.add(aside: try SystemCalls.open(folder.path, O_RDONLY | O_DIRECTORY)) { _ in true }
        #expect(bases.sizes == sizes.reversed() + sizes.reversed().map { $0 + 1 })
    }
}
