// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The desktop of a lab host. There is no browser on a machine for tests: programs of the names that `baton accept`
/// calls stand for it, and tell.
package struct LabDesktop: Sendable {
    /// Runs a command within it.
    package let wrapper: [String]
    private let openings: URL

    /// Writes the programs into a folder of the lab.
    package init(_ lab: HandoffLab) throws {
        let folder = try lab.destination("desktop")
        let openings = folder.appendingPathComponent("opened")
        self.openings = openings
        func write(_ text: String, to name: String, mode: Int = 0o644) throws {
            let file = folder.appendingPathComponent(name)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
        }
        try write("#!/bin/sh\necho \"$#:$1\" >>'\(openings.path)'\n", to: "bin/xdg-open", mode: 0o755)
        try write("#!/bin/sh\necho fake.desktop\n", to: "bin/xdg-settings", mode: 0o755)
        try write(
            "[Desktop Entry]\nType=Application\nName=Fake Browser\nExec=false %u\n", to: "applications/fake.desktop")
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        wrapper = ["env", "DISPLAY=:7", "PATH=\(folder.path)/bin:\(path)", "XDG_DATA_HOME=\(folder.path)"]
    }

    /// The calls of the browser, each as `COUNT:FIRST ARGUMENT`.
    package var opened: [String] {
        ((try? String(contentsOf: openings, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
    }
}
