// SPDX-License-Identifier: Apache-2.0

/// What another version of a document has left in files of its part, where there was no room for both: the document is
/// written over it chunk by chunk, and built upon what of it still stands.
///
/// The chunk that was written over last is held in memory: an insertion moves what follows, and the next chunk then
/// begins with its end. What was written over before that is gone, and what had to be built upon it comes again. 1 MiB,
/// made when first needed. Belongs to the thread of the part.
final class Remnants {
    /// How many requests may ask again for what could not be built, before the rest comes as it is: 2.
    static let attemptLimit = 2

    /// By their numbers in the document.
    let files: Set<Int>

    private let part: any Part
    private var room: UnsafeMutableRawBufferPointer?
    /// What stood where a chunk stands now, as far as that is held.
    private var last: (file: Int, range: Range<UInt64>)?
    /// Whether the other device was told of what is here.
    private var telling = Telling.notYet

    private enum Telling {
        case notYet
        case done
        case over
    }

    init(of files: Set<Int>, in part: any Part) {
        self.files = files
        self.part = part
    }

    deinit {
        room?.deallocate()
    }

    /// Opens a file to be built upon; nil where nothing was left in it.
    func open(_ file: Int) -> BasisFile? { files.contains(file) ? part.openBasis(file: file) : nil }

    /// The other device is about to be told of what is here now.
    func beginTelling() {
        if telling == .notYet { telling = .done }
        last = nil
    }

    /// Nothing is built upon them any more.
    func endTelling() {
        telling = .over
        last = nil
    }

    /// A chunk is about to be written. Where what stands there cannot be read it is not held.
    func willWrite(_ place: ChunkLayout.Place) {
        guard telling == .done, files.contains(place.file) else { return }
        let room = room ?? .allocate(byteCount: ChunkLayout.chunkSize, alignment: 4096)
        self.room = room
        last = nil
        let bytes = UnsafeMutableRawBufferPointer(rebasing: room[..<place.size])
        guard let count = try? part.read(file: place.file, at: place.offset, into: bytes) else { return }
        last = (place.file, place.offset..<place.offset + UInt64(count))
    }

    /// Puts what is held of bytes of a file, which were just read, in the place of what stands there now.
    func restore(_ bytes: UnsafeMutableRawBufferPointer, ofFile file: Int, at offset: UInt64) {
        guard let last, let room, last.file == file else { return }
        let held = (offset..<offset + UInt64(bytes.count)).clamped(to: last.range)
        guard !held.isEmpty else { return }
        let source = Int(held.lowerBound - last.range.lowerBound)
        UnsafeMutableRawBufferPointer(rebasing: bytes[Int(held.lowerBound - offset)...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: room[source..<source + held.count]))
    }
}
