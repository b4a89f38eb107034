// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Pages of the program and its libraries that only starting needed.
package enum StartupPages {
    /// Takes them out of this process's resident memory: some 20 MiB of a node, which waits for days after that.
    ///
    /// They are clean pages of files. One that is used again is mapped again, without a read of the disk while the page
    /// cache has it. Only mappings are taken that are not writable and of which no page was changed, as the dynamic
    /// linker changes those that it relocates. To be called once, before libraries are unloaded: a mapping must not
    /// change meanwhile.
    package static func release() {
        for mapping in unchangedFileMappings() { madvise(mapping.baseAddress, mapping.count, Int32(MADV_DONTNEED)) }
    }

    /// Read from /proc/self/smaps (proc_pid_smaps(5)); empty where it cannot be read.
    private static func unchangedFileMappings() -> [UnsafeMutableRawBufferPointer] {
        guard let file = fopen("/proc/self/smaps", "re") else { return [] }
        defer { fclose(file) }
        var found: [UnsafeMutableRawBufferPointer] = []
        var current: UnsafeMutableRawBufferPointer?
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        while getline(&line, &capacity, file) > 0, let line {
            let fields = String(cString: line).split(whereSeparator: \.isWhitespace)
            if fields.count == 2 || fields.count == 3, fields[0] == "Anonymous:" {
                if fields[1] == "0", let current { found.append(current) }
                current = nil
            } else if fields.count >= 5, !fields[0].hasSuffix(":") {
                current = mapping(fields)
            }
        }
        return found
    }

    /// The mapping of a header line, if it is of a file and neither writable nor shared.
    private static func mapping(_ fields: [Substring]) -> UnsafeMutableRawBufferPointer? {
        let bounds = fields[0].split(separator: "-").compactMap { UInt(String($0), radix: 16) }
        guard fields.count == 6, fields[5].hasPrefix("/"), ["r-xp", "r--p"].contains(fields[1]), bounds.count == 2,
            let start = UnsafeMutableRawPointer(bitPattern: bounds[0]), bounds[1] > bounds[0]
        else { return nil }
        return UnsafeMutableRawBufferPointer(start: start, count: Int(bounds[1] - bounds[0]))
    }
}
