// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatonApplications

@Suite("Info.plist")
struct InfoPropertyListTests {
    /// The list of Xcode's templates, with the additions of Apple's guide for Handoff.
    private static let project = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
            <key>CFBundleDevelopmentRegion</key>
            <string>$(DEVELOPMENT_LANGUAGE)</string>
            <key>CFBundleExecutable</key>
            <string>$(EXECUTABLE_NAME)</string>
            <key>CFBundleIdentifier</key>
            <string>$(PRODUCT_BUNDLE_IDENTIFIER)</string>
            <key>CFBundleInfoDictionaryVersion</key>
            <string>6.0</string>
            <key>CFBundleName</key>
            <string>${PRODUCT_NAME}</string>
            <key>CFBundleShortVersionString</key>
            <string>1.0</string>
            <key>LSRequiresIPhoneOS</key>
            <true/>
            <key>NSUserActivityTypes</key>
            <array>
                <string>com.raywenderlich.shopsnap.view</string>
                <string>$(PRODUCT_BUNDLE_IDENTIFIER).edit</string>
            </array>
            <key>CFBundleDocumentTypes</key>
            <array>
                <dict>
                    <key>CFBundleTypeName</key>
                    <string>Shopping list</string>
                    <key>CFBundleTypeExtensions</key>
                    <array><string>shoplist</string></array>
                    <key>LSItemContentTypes</key>
                    <array><string>com.raywenderlich.shoplist</string></array>
                    <key>NSUbiquitousDocumentUserActivityType</key>
                    <string>com.raywenderlich.shopsnap.document</string>
                </dict>
                <dict>
                    <key>CFBundleTypeName</key>
                    <string>Picture</string>
                    <key>CFBundleTypeIconFiles</key>
                    <array/>
                </dict>
            </array>
            <key>UISupportedInterfaceOrientations</key>
            <array><string>UIInterfaceOrientationPortrait</string></array>
        </dict>
        </plist>
        """

    private static let entitlements = """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict>
            <key>application-identifier</key>
            <string>$(AppIdentifierPrefix)$(CFBundleIdentifier)</string>
            <key>com.apple.developer.associated-domains</key>
            <array>
                <string>applinks:$(UNKNOWN)</string>
                <string>webcredentials:example.org</string>
                <string>activitycontinuation:*.example.org?mode=developer</string>
                <string>activitycontinuation:$(TeamIdentifierPrefix)example.org</string>
            </array>
        </dict></plist>
        """

    private static func manifest(
        _ text: String, entitlements: String? = nil, command: [String]? = ["x"], team: String? = nil,
        _ variables: [String: String] = [:]
    ) throws -> ApplicationManifest {
        try InfoPropertyList(Array(text.utf8), entitlements: entitlements.map { Array($0.utf8) })
            .manifest(command: command, team: team, variables: BuildVariables(variables), source: "/p")
    }

    private static func plist(_ body: String) -> String { "<plist version=\"1.0\"><dict>\(body)</dict></plist>" }

    private static func problem(_ make: @autoclosure () throws -> ApplicationManifest) -> String {
        do {
            return "no problem: \(try make())"
        } catch {
            return "\(error)"
        }
    }

    private static let variables = [
        "PRODUCT_BUNDLE_IDENTIFIER": "com.raywenderlich.shopsnap", "PRODUCT_NAME": "ShopSnap",
    ]

    @Test("one of a project for Apple's devices does as it is, in XML")
    func project() throws {
        let manifest = try Self.manifest(
            Self.project, entitlements: Self.entitlements, team: "A1B2C3D4E5", Self.variables)
        #expect(manifest.identifier == "com.raywenderlich.shopsnap")
        #expect(manifest.name == "ShopSnap" && manifest.team == "A1B2C3D4E5" && manifest.command == ["x"])
        #expect(
            manifest.activityTypes == [
                "com.raywenderlich.shopsnap.view", "com.raywenderlich.shopsnap.edit",
                "com.raywenderlich.shopsnap.document",
            ])
        #expect(
            manifest.documentTypes == [
                DocumentType(
                    activityType: "com.raywenderlich.shopsnap.document", fileExtensions: ["shoplist"],
                    contentTypes: ["com.raywenderlich.shoplist"])
            ])
        #expect(manifest.associatedDomains.map(\.description) == ["*.example.org", "a1b2c3d4e5.example.org"])
        #expect(manifest.source == .registered(from: "/p"))
    }

    @Test("a variable without a value is named, with what to do")
    func unresolved() {
        #expect(
            Self.problem(try Self.manifest(Self.project))
                == "$(PRODUCT_BUNDLE_IDENTIFIER) has no value: give it with --set PRODUCT_BUNDLE_IDENTIFIER=VALUE")
        #expect(
            Self.problem(try Self.manifest(Self.project, ["PRODUCT_BUNDLE_IDENTIFIER": "a"]))
                == "$(PRODUCT_NAME) has no value: give it with --set PRODUCT_NAME=VALUE")
        #expect(
            Self.problem(try Self.manifest(Self.project, entitlements: Self.entitlements, Self.variables))
                == "$(TeamIdentifierPrefix) has no value: give the team with --team TEAM")
    }

    @Test("what is missing has the value that a build would give it")
    func missing() throws {
        let bare = try Self.manifest(Self.plist(""), ["PRODUCT_BUNDLE_IDENTIFIER": "org.example.editor"])
        #expect(bare.identifier == "org.example.editor" && bare.name == "editor" && bare.team.isEmpty)
        let named = try Self.manifest(
            Self.plist(""), ["PRODUCT_BUNDLE_IDENTIFIER": "org.example.editor", "PRODUCT_NAME": "Editor"])
        #expect(named.name == "Editor")
        let display = try Self.manifest(
            Self.plist(
                "<key>CFBundleIdentifier</key><string>a</string><key>CFBundleName</key><string>$(X)</string>"
                    + "<key>CFBundleDisplayName</key><string>Shown</string>"))
        #expect(display.name == "Shown")
    }

    @Test("team: what is said, else the file, else the entitlements, else the variable")
    func teams() throws {
        let own = Self.plist(
            "<key>CFBundleIdentifier</key><string>a</string><key>BatonTeam</key><string>OWN</string>")
        let rights = Self.plist(
            "<key>com.apple.developer.team-identifier</key><string>$(DEVELOPMENT_TEAM)</string>")
        let plain = Self.plist("<key>CFBundleIdentifier</key><string>a</string>")
        #expect(try Self.manifest(own, team: "SAID").team == "SAID")
        #expect(try Self.manifest(own, team: "").team == "")
        #expect(try Self.manifest(own, entitlements: rights).team == "OWN")
        #expect(try Self.manifest(plain, entitlements: rights, ["DEVELOPMENT_TEAM": "DEV"]).team == "DEV")
        #expect(try Self.manifest(plain, ["DEVELOPMENT_TEAM": "DEV"]).team == "DEV")
        #expect(Self.problem(try Self.manifest(plain, entitlements: rights)).contains("--team TEAM"))
    }

    @Test("Baton's own keys: the command as a line or as words, its terminal, and versions")
    func ownKeys() throws {
        let head = "<key>CFBundleIdentifier</key><string>a</string><key>BatonCommand</key>"
        #expect(
            try Self.manifest(Self.plist(head + "<string>editor 'a b'</string>"), command: nil).command
                == ["editor", "a b"])
        #expect(
            try Self.manifest(
                Self.plist(head + "<array><string>editor</string><string>$(X) b</string></array>"), command: nil,
                ["X": "a"]
            ).command == ["editor", "a b"])
        #expect(try Self.manifest(Self.plist(head + "<string>editor</string>"), command: ["z"]).command == ["z"])
        #expect(
            Self.problem(try Self.manifest(Self.plist(head + "<string>'</string>"), command: nil)).contains(
                "not closed"))
        let terminal = try Self.manifest(Self.plist(head + "<string>e</string><key>BatonTerminal</key><true/>"))
        #expect(terminal.needsTerminal)
        #expect(try !Self.manifest(Self.plist(head + "<string>e</string>")).needsTerminal)
        let versions = try Self.manifest(
            Self.plist(
                head + "<string>e</string><key>NSUserActivityTypes</key><array><string>t</string></array>"
                    + "<key>BatonActivityVersions</key><dict><key>t</key><string>1-3</string></dict>"))
        #expect(versions.readableVersions.statements == ["t": 1...3])
    }

    @Test("lists that go too deep are refused before they are decoded")
    func nesting() throws {
        func nested(_ name: String, _ depth: Int) -> String {
            Self.plist(
                "<key>CFBundleIdentifier</key><string>a</string><key>x</key>"
                    + String(repeating: "<\(name) a=\"/\"><!-- </\(name)> --><key>y</key>", count: depth)
                    + String(repeating: "</\(name)>", count: depth))
        }
        let plists = String(repeating: "<plist>", count: 5_000) + Self.plist("")
        let bound = PropertyListShape.containerBound
        for text in [nested("array", 5_000), nested("dict", 5_000), plists, nested("array", bound)] {
            #expect(Self.problem(try Self.manifest(text)).contains("too many arrays and dictionaries"))
        }
        let arrays = "<key>x</key>" + String(repeating: "<array>", count: bound - 2)
        #expect(
            try Self.manifest(
                Self.plist(
                    "<key>CFBundleIdentifier</key><string>a</string>" + arrays
                        + String(repeating: "</array>", count: bound - 2))
            ).identifier == "a")
        // Xcode writes neither old-style lists nor other encodings.
        for bytes in [
            Array("{ a = (((\"b\"))); }".utf8), [], Array(try #require(Self.plist("").data(using: .utf16))),
        ] {
            #expect(throws: ApplicationManifestError("it is no property list")) {
                try InfoPropertyList(bytes)
            }
        }
    }

    @Test("what is no such file says so")
    func damaged() throws {
        #expect(Self.problem(try Self.manifest("hello { ")) == "it is no property list")
        #expect(Self.problem(try Self.manifest("bplist00")).contains("convert it to XML"))
        #expect(Self.problem(try Self.manifest("<plist><array/></plist>")).contains("without a dictionary"))
        #expect(
            Self.problem(try Self.manifest(Self.plist("<key>NSUserActivityTypes</key><string>a</string>")))
                == "it has another kind of value than expected in NSUserActivityTypes")
        #expect(
            Self.problem(
                try Self.manifest(
                    Self.plist("<key>NSUserActivityTypes</key><array><string>a</string><integer>1</integer></array>")))
                == "it has another kind of value than expected in NSUserActivityTypes, entry 2")
        #expect(
            Self.problem(try Self.manifest(Self.plist(""), entitlements: "x { "))
                == "the file of entitlements is no property list")
        let folder = try ScratchFolder("applications")
        defer { folder.remove() }
        let text = Array(Self.plist("<key>CFBundleIdentifier</key><string>a</string>").utf8)
        let room = (256 << 10) - text.count
        _ = try InfoPropertyList(reading: folder.write(text + [UInt8](repeating: 0x20, count: room), to: "full"))
        let over = try folder.write(text + [UInt8](repeating: 0x20, count: room + 1), to: "over")
        #expect(throws: ApplicationManifestError("it has over 256 KiB")) {
            try InfoPropertyList(reading: over)
        }
        #expect(throws: ApplicationManifestError("the file of entitlements does not exist")) {
            try InfoPropertyList(
                reading: folder.filePath.appending("full"), entitlements: folder.filePath.appending("missing"))
        }
        #expect(throws: ApplicationManifestError("it is no file")) {
            try InfoPropertyList(reading: "/dev/null")
        }
    }
}

@Suite("Build variables")
struct BuildVariablesTests {
    private static let variables = BuildVariables([
        "A": "a", "NAME": "My App 2.0", "INNER": "$(A)-${A}", "EMPTY": "", "BIG": String(repeating: "x", count: 40_000),
    ])

    @Test(
        "replaced as a build does",
        arguments: [
            ("plain", "plain"), ("$(A)b${A}", "aba"), ("$", "$"), ("$A $$(A)", "$A $a"), ("$(INNER)", "$(A)-${A}"),
            ("$(NAME:rfc1034identifier)", "My-App-2.0"), ("$(EMPTY)", ""),
        ])
    func resolves(_ text: String, _ result: String) throws {
        #expect(try Self.variables.resolve(text) == result)
    }

    @Test("what cannot be replaced")
    func refusals() {
        for text in [
            "$(MISSING)", "$(A", "${A)", "$(A:unknown)", "$(A:rfc1034identifier:lower)", "$(X_$(A))", "$(BIG)$(BIG)",
        ] {
            #expect(throws: ApplicationManifestError.self, "\(text)") { try Self.variables.resolve(text) }
        }
    }

    @Test("assignments on the command line")
    func assignments() {
        #expect(BuildVariables.assignment("A=b=c").map { [$0.name, $0.value] } == ["A", "b=c"])
        #expect(BuildVariables.assignment("A_1=").map { [$0.name, $0.value] } == ["A_1", ""])
        for text in ["", "A", "=b", "1A=b", "A B=c", "$(A)=b"] { #expect(BuildVariables.assignment(text) == nil) }
    }
}
