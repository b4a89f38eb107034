// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// From 1; 0 for what is wrong with the file as a whole.
    package let line: Int
    /// One clause, such as `there is no condition "size"`.
    package let problem: String

    init(_ problem: String, line: Int = 0) {
        self.line = line
        self.problem = problem
    }

    package var description: String { line == 0 ? problem : "line \(line): \(problem)" }
}

extension FilePath {
    /// A folder as it is written in a configuration file: absolute, or with `~/`, which is HOME, in front.
    init(configured value: String) throws(ConfigurationError) {
        if value == "~" || value.hasPrefix("~/") {
            let home = getenv("HOME").map { FilePath(platformString: $0) }
            guard let home, home.isAbsolute else {
                throw ConfigurationError("HOME is not set, so that ~ means nothing: write the path")
            }
            self = home.pushing(FilePath(String(value.dropFirst(2)))).tidied
            return
        }
        let path = FilePath(value)
        guard path.isAbsolute else {
            throw ConfigurationError("the folder \"\(value)\" has to begin with / or ~/")
        }
        self = path.tidied
    }

    /// The path without what stands for nothing. Where a `..` behind a link leads only the system knows, when it opens
    /// it.
    var tidied: FilePath {
        components.contains { $0.kind == .parentDirectory } ? self : lexicallyNormalized()
    }
}
