// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonApplications

@Suite("The registry of applications")
struct RegistryTests {
    private let folder: ScratchFolder
    private let registry: ApplicationRegistry

    init() throws {
        folder = try ScratchFolder("registry")
        registry = ApplicationRegistry(
            configurationFolder: folder.filePath.appending("config"),
            desktopEntries: DesktopEntryFolders(environment: [
                "XDG_DATA_HOME": folder.path + "/home",
                "XDG_DATA_DIRS": folder.path + "/local:" + folder.path + "/usr",
                "PATH": folder.path + "/bin",
            ]))
    }

    private static func manifest(_ identifier: String, name: String = "Editor") throws -> ApplicationManifest {
        try ApplicationManifest(
            identifier: identifier, name: name, team: "T", activityTypes: ["org.example.a"],
            documentTypes: [
                DocumentType(activityType: "org.example.b", fileExtensions: ["txt"], contentTypes: ["public.text"])
            ],
            associatedDomains: [AssociatedDomain("*.example.org"), AssociatedDomain("example.net")],
            readableVersions: ReadableVersions(["org.example.a": 1...3, "org.example.b": 2...2]),
            command: ["/opt/editor", "--x", "a b"], needsTerminal: true, desktopEntry: "editor.desktop",
            source: .registered(from: "/src/Info.plist"))
    }

    private func entry(
        _ name: String, to path: String, types: String = "org.example.a;", more: String = ""
    ) throws {
        try folder.write(
            "[Desktop Entry]\nType=Application\nName=\(name)\nExec=editor %F\nX-Baton-Types=\(types)\n\(more)\n",
            to: path)
    }

    @Test("what is registered comes back as it was, in a file for its owner alone")
    func register() throws {
        let manifest = try Self.manifest("org.example.editor")
        #expect(registry.installed().applications.isEmpty)
        #expect(try registry.register(manifest))
        #expect(registry.installed() == InstalledApplications(applications: [manifest], problems: []))
        #expect(registry.installed()["org.example.editor"] == manifest)
        let path = registry.folder.appending("org.example.editor.json")
        #expect(try path.stat().permissions.rawValue & 0o777 == 0o600)
        #expect(try registry.folder.stat().permissions.rawValue & 0o777 == 0o700)

        let renamed = try Self.manifest("org.example.editor", name: "New")
        #expect(try !registry.register(renamed))
        #expect(registry.installed().applications == [renamed])
        #expect(try FileManager.default.contentsOfDirectory(atPath: registry.folder.string).count == 1)
        #expect(try registry.remove("org.example.editor"))
        #expect(try !registry.remove("org.example.editor"))
        #expect(try !registry.remove("../org.example.editor"))
        #expect(registry.installed().applications.isEmpty)
    }

    @Test("a broken file is named, and the others go on; it is seen when it is mended")
    func broken() throws {
        try registry.register(Self.manifest("org.example.whole"))
        try registry.register(Self.manifest("org.example.moved"))
        let text = try #require(folder.read("config/applications/org.example.moved.json"))
        func problems(_ content: String, permissions: Int = 0o600) throws -> String {
            try folder.write(content, to: "config/applications/org.example.x.json", mode: permissions)
            let installed = registry.installed()
            #expect(installed.applications.count == 2)
            #expect(installed.problems.count == 1)
            return installed.problems.first?.reason ?? ""
        }
        #expect(try problems("{").contains("register it again"))
        #expect(try problems("{\"format\": 2}").contains("register it again"))
        #expect(try problems("{\"format\": 1}").contains("register it again"))
        #expect(try problems(text).contains("is the manifest of org.example.moved"))
        #expect(try problems(text.replacing("example.moved", with: "example.x y")).contains("no identifier"))
        #expect(try problems(text, permissions: 0o622).contains("others could write to it"))
        #expect(try problems(String(repeating: " ", count: (256 << 10) + 1)).contains("over 256 KiB"))
        try folder.write(
            text.replacing("example.moved", with: "example.x"), to: "config/applications/org.example.x.json")
        #expect(registry.installed().applications.count == 3 && registry.installed().problems.isEmpty)
        // A leftover of a killed write, and a folder instead of a file.
        try folder.write("x", to: "config/applications/.org.example.y.json.1")
        try folder.write("x", to: "config/applications/folder.json/x")
        #expect(registry.installed().applications.count == 3 && registry.installed().problems.isEmpty)
    }

    @Test("256 are registered at most; one that is there already can be registered anew")
    func full() throws {
        try registry.register(Self.manifest("org.example.a0"))
        let text = try #require(folder.read("config/applications/org.example.a0.json"))
        for number in 1..<256 {
            try folder.write(
                text.replacing("org.example.a0", with: "org.example.a\(number)"),
                to: "config/applications/org.example.a\(number).json")
        }
        #expect(registry.installed().applications.count == 256)
        #expect(throws: ApplicationManifestError.self) {
            try registry.register(Self.manifest("org.example.b"))
        }
        #expect(try !registry.register(Self.manifest("org.example.a7", name: "Anew")))
        #expect(registry.installed()["org.example.a7"]?.name == "Anew")
        // Desktop entries beyond the bound are named and left out.
        try entry("More", to: "usr/applications/more.desktop")
        let installed = registry.installed()
        #expect(installed.applications.count == 256)
        #expect(installed.problems.map(\.path) == [folder.filePath.appending("usr/applications/more.desktop")])
    }

    @Test("a manifest that would not be read again is not written")
    func unusable() throws {
        let kinds = (0..<64).map { "\($0)" + String(repeating: "x", count: 250) }
        let large = try ApplicationManifest(
            identifier: "a", name: "a",
            documentTypes: (0..<128).map { DocumentType(activityType: "t\($0)", contentTypes: kinds) },
            source: .registered(from: nil))
        #expect(throws: ApplicationManifestError.self) { try registry.register(large) }
        #expect(!FileManager.default.fileExists(atPath: registry.folder.string))
    }

    @Test("what is registered goes before a desktop entry, and that comes back when it is removed")
    func precedence() throws {
        try entry("Desktop", to: "usr/applications/org.example.editor.desktop")
        #expect(registry.installed().applications.map(\.name) == ["Desktop"])
        try registry.register(Self.manifest("org.example.editor", name: "Registered"))
        #expect(registry.installed().applications.map(\.name) == ["Registered"])
        try registry.remove("org.example.editor")
        #expect(registry.installed().applications.map(\.name) == ["Desktop"])
    }

    @Test("of desktop entries with one id the first counts, whatever is in it")
    func desktopOrder() throws {
        try entry("Usr", to: "usr/applications/org/editor.desktop")
        #expect(registry.installed()["org-editor"]?.name == "Usr")
        try entry("Local", to: "local/applications/org-editor.desktop")
        #expect(registry.installed().applications.map(\.name) == ["Local"])
        try entry("Home", to: "home/applications/org/editor.desktop", more: "NoDisplay=true")
        #expect(registry.installed().applications.map(\.name) == ["Home"])
        // An edit is seen, and so is that the user hides it or takes Baton's keys away.
        try entry("Home again", to: "home/applications/org/editor.desktop")
        #expect(registry.installed().applications.map(\.name) == ["Home again"])
        try folder.write("[Desktop Entry]\nHidden=true\nX-Baton-Types=a;\n", to: "home/applications/org/editor.desktop")
        #expect(registry.installed() == InstalledApplications(applications: [], problems: []))
        try folder.write("[Desktop Entry]\nType=Application\nName=N\n", to: "home/applications/org/editor.desktop")
        #expect(registry.installed() == InstalledApplications(applications: [], problems: []))
        try FileManager.default.removeItem(atPath: folder.path + "/home/applications/org/editor.desktop")
        #expect(registry.installed().applications.map(\.name) == ["Local"])
    }

    @Test("an entry whose TryExec is not there is not installed until it is")
    func tryExec() throws {
        try entry("Editor", to: "usr/applications/editor.desktop", more: "TryExec=editor")
        #expect(registry.installed().applications.isEmpty)
        try folder.program("bin/editor", "exit 0")
        #expect(registry.installed().applications.map(\.name) == ["Editor"])
        #expect(registry.installed().problems.isEmpty)
    }

    @Test("a broken desktop entry is named where it is meant for Baton, and the others go on")
    func brokenEntry() throws {
        try entry("Whole", to: "usr/applications/whole.desktop")
        try entry("Bad", to: "usr/applications/bad.desktop", types: "a b;")
        try folder.write(
            "[Desktop Entry]\nType=Application\nName=N\nX-Baton-Types=a;\n", to: "usr/applications/c.desktop")
        try folder.write("no desktop entry", to: "usr/applications/d.desktop")
        let installed = registry.installed()
        #expect(installed.applications.map(\.name) == ["Whole"])
        #expect(installed.problems.map { $0.path.lastComponent?.string } == ["bad.desktop", "c.desktop"])
        #expect(installed.problems.map(\.reason).last == "it has no Exec")
    }

    @Test("folders are not searched without end")
    func depth() throws {
        try entry("Deep", to: "usr/applications/1/2/3/4/5/6/7/deep.desktop")
        try entry("Too deep", to: "usr/applications/1/2/3/4/5/6/7/8/deeper.desktop")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/usr/applications/loop", withDestinationPath: ".")
        let identifiers = registry.installed().applications.map(\.identifier)
        #expect(identifiers.contains("1-2-3-4-5-6-7-deep"))
        #expect(!identifiers.contains { $0.contains("deeper") })
    }
}
