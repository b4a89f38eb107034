// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage

extension ScratchFolder {
    /// Writes a program: a script for `sh`.
    @discardableResult
    func program(_ name: String, _ script: String) throws -> FilePath {
        try write("#!/bin/sh\n" + script + "\n", to: name, mode: 0o755)
    }

    func read(_ name: String) -> String? {
        FileManager.default.contents(atPath: path + "/" + name).map { String(decoding: $0, as: UTF8.self) }
    }
}
