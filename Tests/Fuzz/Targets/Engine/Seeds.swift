// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// The inputs in Tests/Fuzz/Corpus that come from the targets themselves.
enum Seeds {
    /// Bytes of one file at the most, so that the repository stays small.
    private static let maximumSize = 4096

    /// Writes the seeds of each target as FOLDER/NAME/seed-NN.
    static func write(_ targets: [any FuzzTarget.Type], to folder: String) throws {
        try makeFolder(FilePath(folder))
        for target in targets {
            let place = FilePath(folder).appending(target.name)
            try makeFolder(place)
            for (number, seed) in try target.seeds().enumerated() {
                guard seed.count <= min(maximumSize, target.maximumLength) else {
                    throw FuzzError("seed \(number) of \(target.name) has \(seed.count) bytes")
                }
                let name = "seed-\(number < 10 ? "0" : "")\(number)"
                let file = try FileDescriptor.open(
                    place.appending(name), .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
                _ = try file.closeAfter { try file.writeAll(seed) }
            }
        }
    }

    private static func makeFolder(_ path: FilePath) throws {
        guard path.withPlatformString({ mkdir($0, 0o755) }) != 0, errno != EEXIST else { return }
        throw FuzzError("\(path) cannot be made: \(Errno(rawValue: errno))")
    }
}
