// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonTestSupport
import Foundation
import Testing

@testable import BatonCLI

extension ScratchFolder {
    /// Runs the command in this home, with desktop entries of its own.
    fileprivate func run(_ arguments: String...) async throws -> BuiltCommand.Result {
        try await BuiltCommand.run(
            ["applications"] + arguments, home: path, in: path,
            environment: ["XDG_DATA_HOME": path + "/data", "XDG_DATA_DIRS": path + "/none"])
    }
}

@Suite("baton applications")
struct ApplicationsTests {
    private static let info = """
        <plist version="1.0"><dict>
            <key>CFBundleIdentifier</key><string>$(PRODUCT_BUNDLE_IDENTIFIER)</string>
            <key>CFBundleName</key><string>Shop\u{202E}Snap</string>
            <key>NSUserActivityTypes</key>
            <array><string>org.example.shop.view</string><string>org.example.shop.edit</string></array>
            <key>BatonActivityVersions</key><dict><key>org.example.shop.edit</key><string>1-2</string></dict>
            <key>CFBundleDocumentTypes</key>
            <array><dict>
                <key>CFBundleTypeExtensions</key><array><string>shop</string></array>
                <key>NSUbiquitousDocumentUserActivityType</key><string>org.example.shop.list</string>
            </dict></array>
        </dict></plist>
        """

    private static let entitlements = """
        <plist version="1.0"><dict>
            <key>com.apple.developer.associated-domains</key>
            <array><string>applinks:a.org</string><string>activitycontinuation:*.example.org</string></array>
        </dict></plist>
        """

    @Test("registered, listed for people and as JSON, removed")
    func roundTrip() async throws {
        let home = try ScratchFolder("applications")
        defer { home.remove() }
        let empty = try await home.run()
        #expect(empty.status == 0 && empty.output.isEmpty)
        #expect(empty.errors.hasPrefix("No application here continues activities: register one with"))

        let file = try home.write(Self.info, to: "Info.plist")
        try home.write(Self.entitlements, to: "Shop.entitlements")
        let registered = try await home.run(
            "register", "Info.plist", "--command", "bin/shop 'a b'", "--team", "A1B2C3D4E5", "--entitlements",
            "Shop.entitlements", "--set", "PRODUCT_BUNDLE_IDENTIFIER=org.example.shop")
        #expect(registered.status == 0 && registered.output.isEmpty)
        #expect(
            registered.errors == """
                Shop\\u{202e}Snap (org.example.shop) is registered: 3 activity types, team A1B2C3D4E5.
                It cannot be started now: there is no \(home.path)/bin/shop.

                """)
        let types = "org.example.shop.view org.example.shop.edit org.example.shop.list"
        let listed = try await home.run("list")
        #expect(
            listed.output == """
                NAME              IDENTIFIER        TEAM        TYPES                                                              FROM
                Shop\\u{202e}Snap  org.example.shop  A1B2C3D4E5  \(types)  registered

                """)
        let json = try await home.run("--json")
        #expect(
            json.output == #"{"identifier":"org.example.shop","name":"Shop\u202eSnap","team":"A1B2C3D4E5","#
                + #""types":["org.example.shop.view","org.example.shop.edit","org.example.shop.list"],"#
                + #""documents":[{"type":"org.example.shop.list","extensions":["shop"],"contentTypes":[]}],"#
                + #""versions":{"org.example.shop.edit":{"oldest":1,"newest":2}},"domains":["*.example.org"],"#
                + "\"command\":[\"\(home.path)/bin/shop\",\"a b\"],\"terminal\":false,\"desktopEntry\":null,"
                + "\"registered\":true,\"file\":\"\(file)\"}\n")

        let removed = try await home.run("remove", "org.example.shop")
        #expect(removed.status == 0 && removed.errors == "org.example.shop is removed.\n")
        let again = try await home.run("remove", "org.example.shop")
        #expect(again.status == ExitStatus.usage.rawValue)
        #expect(
            again.errors == "baton: no application org.example.shop is registered: see `baton applications`\n")
    }

    @Test("no team, nothing to continue, and registering again are said")
    func remarks() async throws {
        let home = try ScratchFolder("applications")
        defer { home.remove() }
        try home.write(
            "<plist><dict><key>BatonCommand</key><string>cat</string></dict></plist>", to: "own.plist")
        let first = try await home.run("register", "own.plist", "--set", "PRODUCT_BUNDLE_IDENTIFIER=org.example.cat")
        #expect(
            first.errors == """
                cat (org.example.cat) is registered: 0 activity types.
                It has no team, and shares activities with applications without one. --team TEAM sets a team.
                It declares no activity types (NSUserActivityTypes), so it never receives an activity.

                """)
        let second = try await home.run(
            "register", "own.plist", "--team", "T", "--set", "PRODUCT_BUNDLE_IDENTIFIER=org.example.cat")
        #expect(second.errors.hasPrefix("cat (org.example.cat) is registered again: 0 activity types, team T.\n"))
    }

    @Test("bad input is told in a sentence that says what to do")
    func refusals() async throws {
        let home = try ScratchFolder("applications")
        defer { home.remove() }
        let file = try home.write(Self.info, to: "Info.plist")
        func refusal(_ arguments: String...) async throws -> String {
            let result = try await BuiltCommand.run(
                ["applications", "register"] + arguments, home: home.path, in: home.path)
            #expect(result.status == ExitStatus.usage.rawValue)
            return result.errors
        }
        let set = "PRODUCT_BUNDLE_IDENTIFIER=org.example.shop"
        #expect(
            try await refusal("Info.plist", "--command", "x")
                == "baton: \(file): $(PRODUCT_BUNDLE_IDENTIFIER) has no value: "
                + "give it with --set PRODUCT_BUNDLE_IDENTIFIER=VALUE\n")
        #expect(
            try await refusal("Info.plist", "--set", set)
                == "baton: \(file) does not name the program to start: give it with --command\n")
        #expect(
            try await refusal("Info.plist", "--set", set, "--command", "a 'b")
                == "baton: the command of --command has a ' that is not closed\n")
        #expect(
            try await refusal("Info.plist", "--set", "x", "--command", "a")
                == "baton: --set \"x\" is not NAME=VALUE, such as --set PRODUCT_NAME=Editor\n")
        #expect(
            try await refusal("Info.plist", "--set", "PRODUCT_BUNDLE_IDENTIFIER=a b", "--command", "a")
                .hasPrefix("baton: \(file): \"a b\" is no identifier: one has up to 200 letters"))
        #expect(
            try await refusal("missing.plist", "--command", "a")
                == "baton: \(home.path)/missing.plist: it does not exist\n")
        #expect(
            try await refusal("Info.plist", "--set", set, "--command", "a", "--entitlements", "missing")
                == "baton: \(file): the file of entitlements does not exist\n")
        try home.write("hello {", to: "text")
        #expect(
            try await refusal("text", "--command", "a") == "baton: \(home.path)/text: it is no property list\n")
        #expect(!FileManager.default.fileExists(atPath: home.path + "/config"))
    }

    @Test("desktop entries are listed, a broken one is named, and removing one says what it is")
    func desktopEntries() async throws {
        let home = try ScratchFolder("applications")
        defer { home.remove() }
        let entry = try home.write(
            "[Desktop Entry]\nType=Application\nName=Editor\nExec=editor %F\nX-Baton-Types=org.example.a;\n",
            to: "data/applications/org.example.editor.desktop")
        let bad = try home.write(
            "[Desktop Entry]\nType=Application\nName=Bad\nExec=bad\nX-Baton-Types=a\u{1B}[2J;\n",
            to: "data/applications/bad.desktop")
        let listed = try await home.run()
        #expect(listed.status == 0)
        #expect(
            listed.output == """
                NAME    IDENTIFIER          TEAM  TYPES          FROM
                Editor  org.example.editor  -     org.example.a  org.example.editor.desktop

                """)
        #expect(listed.errors.hasPrefix("baton: \(bad): \"a\\u{1b}[2J\" is no activity type"))
        let removed = try await home.run("remove", "org.example.editor")
        #expect(removed.status == ExitStatus.usage.rawValue)
        #expect(
            removed.errors == "baton: org.example.editor has the desktop entry \(entry): "
                + "remove the X-Baton- keys from it\n")
        try home.write(Self.info, to: "Info.plist")
        let set = "PRODUCT_BUNDLE_IDENTIFIER=org.example.editor"
        _ = try await home.run("register", "Info.plist", "--command", "cat", "--set", set)
        let back = try await home.run("remove", "org.example.editor")
        #expect(
            back.errors == """
                org.example.editor is removed.
                Its desktop entry is used now: \(entry).

                """)
    }

    @Test("help names the keys and shows examples")
    func help() {
        let all = ApplicationsCommand.helpMessage(columns: 80)
        for key in ["Types", "Team", "Identifier", "Documents", "Versions", "Domains"] {
            #expect(all.contains("X-Baton-\(key)="))
        }
        for command in [ApplicationsListCommand.self, ApplicationsRegisterCommand.self, ApplicationsRemoveCommand.self]
            as [any ParsableCommand.Type]
        {
            #expect(command.helpMessage(columns: 80).contains("EXAMPLES:"))
        }
    }
}
