// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import SystemPackage
import Testing

@testable import BatonApplications

@Suite("Desktop entries")
struct DesktopEntryTests {
    private static func entry(_ text: String) throws -> DesktopEntry { try DesktopEntry(Array(text.utf8)) }

    private static func read(
        _ text: String, id: String = "org.example.editor.desktop"
    ) throws -> ApplicationManifest? {
        let folder = try ScratchFolder("applications")
        defer { folder.remove() }
        return try DesktopApplication.read(
            try folder.write(text, to: id), id: id, in: DesktopEntryFolders(environment: [:]))
    }

    @Test("groups, comments, spaces, escapes and lists")
    func syntax() throws {
        let entry = try Self.entry(
            """
            # a comment
            [Desktop Entry]
            Name = Editor \t
            # Name=Comment
            Comment=a\\sb\\nc\\\\d\\x\\
            Types=a; b;c\\;d;;e
            Hidden=true
            Empty=
            no value

            [Desktop Action new]
            Name=Action
            """)
        #expect(entry.string("Name") == "Editor")
        #expect(entry.string("Comment") == "a b\nc\\d\\x\\")
        #expect(entry.list("Types") == ["a", "b", "c;d", "e"])
        #expect(entry.boolean("Hidden") && !entry.boolean("Name") && !entry.boolean("Missing"))
        #expect(entry.string("Empty") == "" && entry.list("Empty").isEmpty && entry.string("Missing") == nil)
        #expect(throws: ApplicationManifestError.self) { try Self.entry("Name=x\n") }
        #expect(throws: ApplicationManifestError.self) { try DesktopEntry([0x5B, 0xFF]) }
        #expect(try Self.entry("[Desktop Entry]\r\nName=x\r\n").string("Name") == "x")
    }

    @Test(
        "Exec becomes words",
        arguments: [
            ("editor", ["editor"]), ("editor %F", ["editor"]), ("editor -n %u --x", ["editor", "-n", "--x"]),
            (#""/opt/my editor" "a\"b" "c\\d" "\$x" "\`""#, ["/opt/my editor", "a\"b", "c\\d", "$x", "`"]),
            ("editor 100%%", ["editor", "100%"]), ("editor %i %c %k", ["editor"]),
            ("editor --title=%c", ["editor", "--title="]), ("editor \"\" %x %", ["editor", ""]),
            ("editor %d %D %n %N %v %m", ["editor"]), ("editor 'a b'", ["editor", "a b"]),
            ("editor --file=%f", ["editor", "--file="]), ("sh -c \"echo a; b\"", ["sh", "-c", "echo a; b"]),
        ])
    func exec(_ line: String, _ words: [String]) throws {
        #expect(try DesktopApplication.command(line) == words)
    }

    @Test("Exec that means nothing is refused")
    func refusedExec() throws {
        for line in ["editor \"a", "  ", "editor \\"] {
            #expect(throws: ApplicationManifestError.self, "\(line)") { try DesktopApplication.command(line) }
        }
    }

    @Test("every key of Baton's")
    func keys() throws {
        let text = """
            [Desktop Entry]
            Type=Application
            Name=Editor
            Name[de]=Schreiber
            Exec=editor %F
            Terminal=true
            TryExec=/bin/sh
            X-Baton-Types=org.example.view;org.example.edit;
            X-Baton-Documents=org.example.edit:txt,MD;
            X-Baton-Versions=org.example.view:1-3;org.example.edit:2;
            X-Baton-Domains=example.org;activitycontinuation:*.example.net;applinks:example.com;
            X-Baton-Team=A1B2C3D4E5
            """
        let manifest = try #require(try Self.read(text))
        #expect(try Self.read(text.replacing("/bin/sh", with: "/nonexistent/editor")) == nil)
        #expect(manifest.identifier == "org.example.editor" && manifest.desktopEntry == "org.example.editor.desktop")
        #expect(manifest.name == "Editor" && manifest.team == "A1B2C3D4E5")
        #expect(manifest.activityTypes == ["org.example.view", "org.example.edit"])
        #expect(
            manifest.documentTypes == [DocumentType(activityType: "org.example.edit", fileExtensions: ["txt", "md"])])
        #expect(manifest.readableVersions.statements == ["org.example.view": 1...3, "org.example.edit": 2...2])
        #expect(manifest.command == ["editor"] && manifest.needsTerminal)
        #expect(
            try manifest.associatedDomains == [AssociatedDomain("example.org"), AssociatedDomain("*.example.net")])
        #expect(try Self.read(text + "\nX-Baton-Identifier=com.example.x")?.identifier == "com.example.x")
    }

    @Test("what is not for Baton is none of its business; what is and is wrong says so")
    func others() throws {
        let head = "[Desktop Entry]\nType=Application\nName=E\nExec=e\n"
        #expect(try Self.read(head) == nil)
        #expect(try Self.read("not even one") == nil)
        #expect(try Self.read("[Desktop Entry]\nType=Link\nName=E\nX-Baton-Types=a;\n") == nil)
        #expect(try Self.read(head + "Hidden=true\nX-Baton-Types=a;\n") == nil)
        // Meant for Baton, but the id cannot be an identifier, or a value is wrong.
        for (id, line) in [
            ("a b.desktop", "X-Baton-Types=a;"), ("e.desktop", "X-Baton-Types=a b;"),
            ("e.desktop", "X-Baton-Domains=*;"),
            ("e.desktop", "X-Baton-Versions=a;"), ("e.desktop", "X-Baton-Types=a;\nX-Baton-Versions=a:x;"),
            ("e.desktop", "X-Baton-Documents=txt;"),
        ] {
            #expect(throws: ApplicationManifestError.self, "\(line)") { try Self.read(head + line, id: id) }
        }
    }

    @Test("folders come from the environment, the user's first, relative ones not at all")
    func folders() {
        func folders(_ environment: [String: String]) -> [FilePath] {
            DesktopEntryFolders(environment: environment).folders
        }
        #expect(
            folders(["HOME": "/h"]) == [
                "/h/.local/share/applications", "/usr/local/share/applications", "/usr/share/applications",
            ])
        #expect(
            folders(["HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_DATA_DIRS": "/a:b:/c:/a:"]) == [
                "/d/applications", "/a/applications", "/c/applications",
            ])
        #expect(folders(["XDG_DATA_HOME": "d", "XDG_DATA_DIRS": "/a"]) == ["/a/applications"])
    }
}
