// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonEventLoop
import BatonMessages
import BatonTestSupport
import BatonTransport
import Foundation
import Logging
import SwiftProtobuf
import Testing

import struct SystemPackage.FilePath

@testable import BatonNode
@testable import BatonWeb

/// The node's knowledge of applications, with real files and a program that is really launched.
@Suite("Applications of this user", .timeLimit(.minutes(5)))
struct ApplicationsTests {
    private static let type = "org.example.note"

    /// A home, an empty desktop, and what the node keeps about them.
    private final class Scene: Sendable {
        private let scratch: ScratchFolder
        var folder: URL { scratch.url }
        let home: Home
        let applications: Applications
        let handoffSwitch: HandoffSwitchKeeper
        let connection: Connection
        private let other: Connection
        private let pairs = Lock<[(Connection, Connection)]>([])

        /// - Parameter prepare: does something to the home before the node starts.
        init(launchDeadline: Duration = .seconds(30), preparing prepare: (Home) throws -> Void = { _ in }) async throws
        {
            scratch = try ScratchFolder("apps")
            home = try Home(environment: ["BATON_HOME": scratch.path])
            for path in [home.configurationFolder + "/applications", home.stateFolder] {
                try FileManager.default.createDirectory(
                    atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
            try prepare(home)
            let loop = ControlLoop.loop
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            handoffSwitch = try Self.handoffSwitch(of: home)
            applications = Applications(
                home: home,
                environment: [
                    "PATH": scratch.path + "/bin:/usr/bin:/bin", "HOME": scratch.path, "XDG_DATA_DIRS": "/none",
                ], recent: RecentApplications(), handoffSwitch: handoffSwitch,
                associations: SiteAssociations(logger: logger) { host throws(SiteAssociationError) in
                    try SiteAssociation(Self.sites[host.name, default: []])
                }, launchDeadline: launchDeadline, logger: logger)
            (connection, other) = try await connectedPair(on: loop)
        }

        /// The switch as a node of this home finds it.
        static func handoffSwitch(of home: Home) throws -> HandoffSwitchKeeper {
            HandoffSwitchKeeper(
                path: FilePath(home.configurationFolder).appending("handoff"),
                marker: FilePath(home.stateFolder).appending("handoff-switched"),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        /// The answers of web hosts. Other tests cover the fetching itself with real servers.
        private static let sites: [String: [UInt8]] = [
            "reader.example": Array(#"{"activitycontinuation": {"apps": ["TEAM.org.example.reader"]}}"#.utf8),
            "several.example": Array(
                #"{"activitycontinuation": {"apps": ["TEAM.org.example.one", "TEAM.org.example.two"]}}"#.utf8),
            "stranger.example": Array(#"{"activitycontinuation": {"apps": ["TEAM.org.example.else"]}}"#.utf8),
        ]

        func install(
            _ identifier: String, team: String = "", domains: [String] = [], command: [String] = ["true"],
            types: [String] = [ApplicationsTests.type]
        ) throws {
            let registry = ApplicationRegistry(
                configurationFolder: FilePath(home.configurationFolder),
                desktopEntries: DesktopEntryFolders(environment: ["XDG_DATA_DIRS": "/none"]))
            _ = try registry.register(
                ApplicationManifest(
                    identifier: identifier, name: identifier, team: team, activityTypes: types,
                    associatedDomains: domains.map { try AssociatedDomain($0) }, command: command,
                    source: .registered(from: nil)))
        }

        /// Registers an application that runs, on a connection of its own.
        @discardableResult
        func run(
            _ identifier: String, team: String = "", types: [String] = [ApplicationsTests.type], versions: UInt32 = 0,
            inFront: Bool = false
        ) async throws -> Connection {
            let connection = try await ownConnection()
            try await applications.register(
                application(identifier, team, types, versions, inFront, on: connection))
            return connection
        }

        /// A connection for one application alone.
        func ownConnection() async throws -> Connection {
            let pair = try await connectedPair(on: ControlLoop.loop)
            pairs.withLock { $0.append(pair) }
            return pair.0
        }

        func application(
            _ identifier: String, _ team: String = "", _ types: [String] = [ApplicationsTests.type],
            _ versions: UInt32 = 0, _ inFront: Bool = false, on connection: Connection? = nil
        ) throws -> RunningApplication {
            try RunningApplication(
                .with {
                    $0.identifier = identifier
                    $0.team = team
                    $0.inFront = inFront
                    $0.types = types.map { type in
                        .with {
                            $0.type = type
                            $0.newestVersion = versions
                            $0.oldestVersion = min(1, versions)
                        }
                    }
                }, on: connection ?? self.connection)
        }

        /// The one that is chosen.
        func chosen(
            _ activity: WireActivitySummary, wanted: String = ""
        ) async throws -> ApplicationChoice.Candidate? {
            let candidates = try await applications.choose(for: activity, of: "laptop", wanted: wanted)
            return candidates.count == 1 ? candidates[0] : nil
        }

        func choose(_ activity: WireActivitySummary, wanted: String = "") async throws -> [String] {
            try await applications.choose(for: activity, of: "laptop", wanted: wanted).map(\.identifier)
        }
    }

    private func activity(team: String = "", version: UInt32 = 0) -> WireActivitySummary {
        .with {
            $0.type = Self.type
            $0.teamTag = Data(TeamTag(of: team).bytes)
            $0.version = version
        }
    }

    @Test("Only applications of the activity's team that declare its type are chosen")
    func teams() async throws {
        let scene = try await Scene()
        try await scene.run("org.example.ours", team: "EXAMPLE")
        try await scene.run("org.example.others", team: "OTHERS")
        try await scene.run("org.example.none")
        try await scene.run("org.example.deaf", team: "EXAMPLE", types: ["org.example.else"])
        #expect(try await scene.choose(activity(team: "EXAMPLE")) == ["org.example.ours"])
        #expect(try await scene.choose(activity()) == ["org.example.none"])
        #expect(try await scene.choose(activity(team: "THIRD")) == [])
        await #expect(throws: HandoffError.self) {
            _ = try await scene.choose(activity(team: "EXAMPLE"), wanted: "org.example.others")
        }
    }

    @Test("A program under the name of another team's application is not taken for it, and does not stand in its way")
    func impostor() async throws {
        let scene = try await Scene(launchDeadline: .milliseconds(300))
        try scene.install("org.example.ours", team: "EXAMPLE")
        try await scene.run("org.example.ours", team: "OTHERS", inFront: true)
        let chosen = try #require(await scene.chosen(activity(team: "EXAMPLE")))
        #expect(!chosen.isRunning)
        func start() async throws -> RunningApplication {
            try await scene.applications.started(
                chosen, of: TeamTag(of: "EXAMPLE"), continuing: Self.type, for: Self.type)
        }
        let error = await #expect(throws: HandoffError.self) { _ = try await start() }
        #expect(error?.code == .applicationNotStarted)
        try await scene.run("org.example.ours", team: "EXAMPLE", types: ["org.example.else"])
        await #expect(throws: HandoffError.self) { _ = try await start() }
        try await scene.run("org.example.ours", team: "EXAMPLE")
        #expect(try await start().team == "EXAMPLE")
    }

    @Test("Of several the one in front, then the one used last, then the user's choice")
    func several() async throws {
        let scene = try await Scene()
        let first = try await scene.run("org.example.a")
        try await scene.run("org.example.b")
        #expect(try await scene.choose(activity()) == ["org.example.a", "org.example.b"])
        #expect(try await scene.choose(activity(), wanted: "org.example.b") == ["org.example.b"])

        let b = try #require(await scene.chosen(activity(), wanted: "org.example.b"))
        _ = try await scene.applications.started(
            b, of: .none, continuing: Self.type, for: Self.type)
        #expect(try await scene.choose(activity()) == ["org.example.b"])

        try await scene.applications.update(
            to: scene.application("org.example.a", "", [Self.type], 0, true, on: first))
        #expect(try await scene.choose(activity()) == ["org.example.a"])
        await scene.applications.unregister(first)
        #expect(try await scene.choose(activity()) == ["org.example.b"])
    }

    @Test("Of several in front the one that came there last is chosen")
    func severalInFront() async throws {
        let scene = try await Scene()
        let first = try await scene.run("org.example.a", inFront: true)
        try await scene.run("org.example.b", inFront: true)
        #expect(try await scene.choose(activity()) == ["org.example.b"])
        func update(isInFront: Bool) async throws {
            try await scene.applications.update(
                to: scene.application("org.example.a", "", [Self.type], 0, isInFront, on: first))
        }
        // It stays where it was.
        try await update(isInFront: true)
        #expect(try await scene.choose(activity()) == ["org.example.b"])
        try await update(isInFront: false)
        try await update(isInFront: true)
        #expect(try await scene.choose(activity()) == ["org.example.a"])
        // An update after the end of a registration changes nothing.
        await scene.applications.unregister(first)
        try await update(isInFront: true)
        #expect(await scene.applications.count == 1)
        #expect(try await scene.choose(activity()) == ["org.example.b"])
    }

    @Test("An application in front, or that made an activity current, counts as used last, despite earlier takeovers")
    func used() async throws {
        let scene = try await Scene()
        let first = try await scene.run("org.example.a")
        let connection = try await scene.ownConnection()
        try await scene.applications.register(scene.application("org.example.b", on: connection))
        #expect(try await scene.choose(activity()) == ["org.example.a", "org.example.b"])

        // In front, and behind again.
        for isInFront in [true, false] {
            try await scene.applications.update(
                to: scene.application("org.example.a", "", [Self.type], 0, isInFront, on: first))
        }
        #expect(try await scene.choose(activity()) == ["org.example.a"])
        // An activity of its own becomes current.
        await scene.applications.activityBecameCurrent(on: connection)
        #expect(try await scene.choose(activity()) == ["org.example.b"])
        // What is said by a connection that no application registered on is nobody's.
        try await scene.applications.activityBecameCurrent(on: scene.ownConnection())
        #expect(try await scene.choose(activity()) == ["org.example.b"])
        // Registers in front, and goes behind.
        let third = try await scene.run("org.example.c", inFront: true)
        #expect(try await scene.choose(activity()) == ["org.example.c"])
        try await scene.applications.update(to: scene.application("org.example.c", on: third))
        #expect(try await scene.choose(activity()) == ["org.example.c"])
        // An update that does not mention the front changes nothing.
        try await scene.applications.update(to: scene.application("org.example.a", "", [Self.type], 1, on: first))
        #expect(try await scene.choose(activity()) == ["org.example.c"])
    }

    @Test("The last used application is known at once, and written seldom, however often it changes")
    func usedFile() async throws {
        let scene = try await Scene()
        let path = RecentApplications.path(in: FilePath(scene.home.stateFolder))
        let start = ContinuousClock.now
        var files: Set<UInt64> = []
        for _ in 0..<100 {
            for identifier in ["org.example.a", "org.example.b"] {
                await scene.applications.noteUse(of: identifier)
                if let file = try? path.stat() { files.insert(UInt64(file.inode.rawValue)) }
            }
        }
        #expect(await scene.applications.recent.identifiers == ["org.example.b", "org.example.a"])
        #expect(files.count <= 1 + Int((ContinuousClock.now - start) / Applications.writeInterval))
        try await eventually("the last is written", within: .seconds(40)) {
            RecentApplications(reading: path).identifiers == ["org.example.b", "org.example.a"]
        }
    }

    @Test("A version that the application does not read is declined, with both versions")
    func versions() async throws {
        let scene = try await Scene()
        try await scene.run("org.example.a", versions: 2)
        #expect(try await scene.choose(activity(version: 2)) == ["org.example.a"])
        let error = await #expect(throws: HandoffError.self) { try await scene.choose(activity(version: 3)) }
        #expect(error?.code == .versionUnreadable)
        #expect(error?.message.contains("versions 1 to 2") == true && error?.message.contains("version 3") == true)
    }

    @Test("Of several the one in front that does not read the version is passed over, unless none reads it")
    func versionsOfSeveral() async throws {
        let scene = try await Scene()
        try await scene.run("org.example.new", versions: 2)
        try await scene.run("org.example.old", versions: 1, inFront: true)
        #expect(try await scene.choose(activity(version: 1)) == ["org.example.old"])
        #expect(try await scene.choose(activity(version: 2)) == ["org.example.new"])
        let declined: [(version: UInt32, wanted: String)] = [(2, "org.example.old"), (3, "")]
        for (version, wanted) in declined {
            let error = await #expect(throws: HandoffError.self) {
                try await scene.choose(activity(version: version), wanted: wanted)
            }
            #expect(error?.code == .versionUnreadable)
            #expect(error?.message.hasPrefix("org.example.old on this device reads version 1 ") == true)
        }
    }

    @Test("An application keeps identifier and team, and as many register as the bound allows")
    func bounds() async throws {
        let scene = try await Scene()
        let connection = try await scene.run("org.example.a", team: "T")
        for (identifier, team) in [("org.example.b", "T"), ("org.example.a", "U")] {
            let other = try scene.application(identifier, team, on: connection)
            let error = await #expect(throws: HandoffError.self) { try await scene.applications.update(to: other) }
            #expect(error?.code == .invalidRequest)
        }
        for number in 1..<Applications.bound { try await scene.run("org.example.n\(number)") }
        let error = await #expect(throws: HandoffError.self) { try await scene.run("org.example.more") }
        #expect(error?.code == .limitExceeded)
        for name in ["", "a b", "a/b", "..", ".a", String(repeating: "a", count: ManifestBounds.identifier + 1)] {
            #expect(throws: HandoffError.self) { try scene.application(name) }
        }
        for type in ["", "a b", "\u{1B}[31m", String(repeating: "a", count: ManifestBounds.typeName + 1)] {
            #expect(throws: HandoffError.self) { try scene.application("org.example.a", "", [type]) }
        }
        _ = try scene.application(String(repeating: "a", count: ManifestBounds.identifier))
        let types = (0...ApplicationDeclaration.typesBound).map { "org.example.t\($0)" }
        #expect(throws: HandoffError.self) { try scene.application("org.example.a", "", types) }
        _ = try scene.application("org.example.a", "", types.dropLast())
    }

    @Test("One application registers on a connection, and another when that one has gone")
    func oneEach() async throws {
        let scene = try await Scene()
        let connection = try await scene.ownConnection()
        try await scene.applications.register(scene.application("org.example.a", on: connection))
        for identifier in ["org.example.a", "org.example.b"] {
            let error = await #expect(throws: HandoffError.self) {
                try await scene.applications.register(scene.application(identifier, on: connection))
            }
            #expect(error?.code == .invalidRequest)
            #expect(error?.message.contains("org.example.a is registered on this connection already") == true)
        }
        #expect(await scene.applications.count == 1)
        await scene.applications.unregister(connection)
        try await scene.applications.register(scene.application("org.example.b", on: connection))
    }

    @Test(
        "A program that is launched and fails is not waited for, and how it ended is said, to all who want it",
        arguments: [("exit 3", "its exit status is 3"), ("kill -9 $$", "signal 9 ended it")])
    func endsAtOnce(script: String, sentence: String) async throws {
        let scene = try await Scene(launchDeadline: .seconds(40))
        try scene.install("org.example.short", command: ["sh", "-c", script])
        let short = try #require(await scene.chosen(activity()))
        let began = ContinuousClock.now
        async let first = error(scene, short)
        async let second = error(scene, short)
        for error in await [first, second] {
            #expect(error?.code == .applicationNotStarted)
            #expect(error?.message.contains("ended without registering: \(sentence)") == true, "\(error as Any)")
        }
        #expect(ContinuousClock.now - began < .seconds(35))
    }

    @Test("After a program that fails the next launch is a new one")
    func failsTwice() async throws {
        let scene = try await Scene(launchDeadline: .seconds(60))
        try scene.install("org.example.short", command: ["sh", "-c", "exit 1"])
        let short = try #require(await scene.chosen(activity()))
        for _ in 1...2 {
            let failure = await error(scene, short)
            #expect(failure?.message.hasSuffix("its exit status is 1") == true, "\(failure as Any)")
        }
    }

    @Test("All who wait for a launch are told at once that it failed, and the next launch is a new one")
    func launchFails() async throws {
        let scene = try await Scene(launchDeadline: .seconds(60))
        // The service manager says no, as soon as both wait.
        let programs = scene.folder.appendingPathComponent("bin").path
        try FileManager.default.createDirectory(atPath: programs, withIntermediateDirectories: true)
        for (name, script) in [
            ("systemctl", "echo 255.4-1"),
            ("systemd-run", "until [ -e \"$HOME/go\" ]; do sleep 0.05; done; echo no >&2; exit 1"),
        ] {
            try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(fileURLWithPath: programs + "/" + name))
            #expect(chmod(programs + "/" + name, 0o700) == 0)
        }
        try scene.install("org.example.refused", command: ["true"])
        let refused = try #require(await scene.chosen(activity()))
        let began = ContinuousClock.now
        let callers = (1...2).map { _ in Task { await error(scene, refused) } }
        try await eventually("both wait") {
            await scene.applications.launches["org.example.refused"]?.waiting == 2
        }
        try Data().write(to: scene.folder.appendingPathComponent("go"))
        for caller in callers {
            let failure = await caller.value
            #expect(failure?.code == .applicationNotStarted)
            #expect(failure?.message.contains("cannot be launched") == true, "\(failure as Any)")
        }
        #expect(ContinuousClock.now - began < .seconds(55))
        #expect(await scene.applications.launches.isEmpty)
        #expect(await error(scene, refused)?.message.contains("cannot be launched") == true)
    }

    @Test("An application that is switched off is not chosen, and the switch outlives the node")
    func switched() async throws {
        let scene = try await Scene()
        try await scene.run("org.example.a")
        var state = try await scene.handoffSwitch.set(false, for: "org.example.a")
        #expect(state.isOn && !state.isOn(for: "org.example.a") && state.isOn(for: "org.example.b"))
        let off = await #expect(throws: HandoffError.self) { try await scene.choose(activity()) }
        #expect(off?.code == .handoffOff && off?.message.contains("org.example.a") == true)
        state = try await scene.handoffSwitch.set(false, for: "")
        let again = try Scene.handoffSwitch(of: scene.home)
        #expect(again.current == state)
        let error = await #expect(throws: HandoffError.self) { try await scene.choose(activity()) }
        #expect(error?.code == .handoffOff)
        _ = try await again.set(true, for: "")
        #expect(try await again.set(true, for: "org.example.a") == HandoffSwitch())
        #expect(try Scene.handoffSwitch(of: scene.home).current == HandoffSwitch())
        for number in 0..<HandoffSwitch.bound { _ = try await again.set(false, for: "org.example.n\(number)") }
        await #expect(throws: HandoffError.self) { try await again.set(false, for: "org.example.more") }
    }

    @Test("Where the switch was never used it is on, and a file of an earlier version is read")
    func earlierSwitch() async throws {
        let scene = try await Scene()
        #expect(try Scene.handoffSwitch(of: scene.home).current == HandoffSwitch())
        let path = URL(fileURLWithPath: scene.home.configurationFolder + "/handoff")
        try Data("off org.example.a\n".utf8).write(to: path)
        let legacy = try Scene.handoffSwitch(of: scene.home).current
        #expect(legacy == HandoffSwitch(offApplications: ["org.example.a"]))
        try Data("off\n".utf8).write(to: path)
        #expect(try !Scene.handoffSwitch(of: scene.home).current.isOn)
    }

    @Test(
        "A file of the switch that has vanished or is empty, as after a power cut, means off",
        arguments: [nil, "", "\n"])
    func lostSwitch(_ content: String?) async throws {
        for isOn in [true, false] {
            let scene = try await Scene()
            let path = URL(fileURLWithPath: scene.home.configurationFolder + "/handoff")
            // A file that was there when the node started counts as well.
            if isOn {
                _ = try await scene.handoffSwitch.set(true, for: "")
            } else {
                try Data("off\n".utf8).write(to: path)
            }
            #expect(try Scene.handoffSwitch(of: scene.home).current.isOn == isOn)
            if let content {
                try Data(content.utf8).write(to: path)
            } else {
                try FileManager.default.removeItem(at: path)
            }
            let found = try Scene.handoffSwitch(of: scene.home)
            #expect(!found.current.isOn)
            #expect(found.current.problem?.hasPrefix(path.path) == true)
            #expect(try await found.set(true, for: "") == HandoffSwitch())
            #expect(try Scene.handoffSwitch(of: scene.home).current == HandoffSwitch())
        }
    }

    @Test("A damaged file of the switch means off until the user chooses anew", arguments: ["OFF\n", "off a b\n", nil])
    func damagedSwitch(_ content: String?) async throws {
        let scene = try await Scene { home in
            let path = home.configurationFolder + "/handoff"
            if let content {
                try Data(content.utf8).write(to: URL(fileURLWithPath: path))
            } else {
                try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            }
        }
        let path = scene.home.configurationFolder + "/handoff"
        let error = await #expect(throws: HandoffError.self) { try await scene.choose(activity()) }
        #expect(error?.code == .handoffOff && error?.message.contains(path) == true, "\(error?.message ?? "")")
        if content == nil {
            // What is no file is nobody's to remove, and the sentence says what is there.
            let error = await #expect(throws: HandoffError.self) { try await scene.handoffSwitch.set(true, for: "") }
            #expect(error?.message.hasSuffix("\(path) cannot be written: Is a directory") == true)
            #expect(FileManager.default.fileExists(atPath: path))
        } else {
            #expect(try await scene.handoffSwitch.set(true, for: "") == HandoffSwitch())
            #expect(try await scene.choose(activity()) == [])
        }
    }

    @Test("A program that is launched and never registers is waited for until the deadline, by all who want it")
    func neverRegisters() async throws {
        let scene = try await Scene(launchDeadline: .milliseconds(300))
        let launches = scene.folder.appendingPathComponent("launches")
        try scene.install(
            "org.example.slow", command: ["sh", "-c", "echo $BATON_ACTIVITY_TYPE >> \(launches.path)"])
        let slow = try #require(await scene.chosen(activity()))
        async let first = failure(scene, slow)
        async let second = failure(scene, slow)
        #expect(await [first, second] == [.applicationNotStarted, .applicationNotStarted])
        try await eventually("the program ran") { FileManager.default.fileExists(atPath: launches.path) }
        #expect(try String(contentsOf: launches, encoding: .utf8) == Self.type + "\n", "launched once")
    }

    @Test("A web page goes to the application that claims its host and that the host lists, and to no other")
    func pages() async throws {
        let scene = try await Scene()
        try scene.install("org.example.reader", team: "TEAM", domains: ["reader.example", "stranger.example"])
        let applications = scene.applications
        #expect(
            await applications.applications(opening: "https://reader.example/a?b").map(\.candidate.identifier)
                == ["org.example.reader"])
        #expect(
            await applications.applications(opening: "https://READER.example").map(\.candidate.identifier)
                == ["org.example.reader"])
        for page in [
            "https://stranger.example/", "https://unheard.example/", "https://reader.example:8443/",
            "https://sub.reader.example/", "https://127.0.0.1/", "",
        ] {
            #expect(await applications.applications(opening: page) == [], "\(page)")
        }
        try scene.install("org.example.reader", team: "OTHER", domains: ["reader.example"])
        #expect(await applications.applications(opening: "https://reader.example/") == [])
        try scene.install("org.example.reader", team: "TEAM", domains: ["reader.example"], command: [])
        #expect(await applications.applications(opening: "https://reader.example/") == [], "it cannot be launched")
        try await scene.run("org.example.reader", team: "TEAM")
        let running = await applications.applications(opening: "https://reader.example/")
        #expect(running.map(\.candidate.isRunning) == [true])
        _ = try await scene.handoffSwitch.set(false, for: "org.example.reader")
        #expect(await applications.applications(opening: "https://reader.example/") == [])
    }

    @Test("Of several applications that a page's host lists: the one in front, the one used last, or the user's choice")
    func severalForAPage() async throws {
        let scene = try await Scene()
        for name in ["one", "two"] {
            try scene.install("org.example.\(name)", team: "TEAM", domains: ["several.example"])
        }
        let applications = scene.applications
        func opening(wanted: String = "") async -> [String] {
            await applications.applications(opening: "https://several.example/", wanted: wanted)
                .map(\.candidate.identifier)
        }
        #expect(await opening() == ["org.example.one", "org.example.two"], "the user is asked")
        #expect(await opening(wanted: "org.example.two") == ["org.example.two"])
        #expect(await opening(wanted: "org.example.else") == [])
        #expect(await applications.claimsHosts("org.example.two"))
        #expect(await !applications.claimsHosts("org.example.else"))
        let front = try await scene.run("org.example.two", team: "TEAM", types: [], inFront: true)
        #expect(await opening() == ["org.example.two"], "it is in front")
        await applications.unregister(front)
        #expect(await opening() == ["org.example.two"], "it was in front last")
        try await scene.run("org.example.one", team: "TEAM", types: [])
        let candidate = ApplicationChoice.Candidate(
            identifier: "org.example.one", name: "org.example.one", isRunning: true)
        _ = try await applications.started(
            candidate, of: TeamTag(of: "TEAM"), continuing: nil, for: "NSUserActivityTypeBrowsingWeb")
        #expect(await opening() == ["org.example.one"], "it was used last")
        #expect(await opening(wanted: "org.example.two") == ["org.example.two"])
    }

    @Test("Browsers of a page's team declare the type; an application that claims hosts is none")
    func browsers() async throws {
        let scene = try await Scene()
        let type = ActivityType.browsingWeb
        var page = activity(team: "TEAM")
        page.type = type
        #expect(try await scene.choose(page) == [])
        try scene.install("org.example.reader", team: "TEAM", domains: ["reader.example"], types: [type])
        #expect(try await scene.choose(page) == [], "its host decides")
        try await scene.run("org.example.reader", team: "TEAM", types: [type], inFront: true)
        #expect(try await scene.choose(page) == [], "also where it runs")
        try scene.install("org.example.browser", team: "TEAM", types: [type])
        #expect(try await scene.choose(page) == ["org.example.browser"])
        try scene.install("org.example.second", team: "TEAM", types: [type])
        #expect(try await scene.choose(page) == ["org.example.browser", "org.example.second"])
        page.teamTag = Data(TeamTag(of: "OTHER").bytes)
        #expect(try await scene.choose(page) == [], "of another team")
        page.teamTag = Data(TeamTag(of: "TEAM").bytes)
        try await scene.run("org.example.browser", team: "TEAM", types: [type], versions: 1, inFront: true)
        #expect(try await scene.choose(page) == ["org.example.browser"])
        page.version = 2
        #expect(try await scene.choose(page) == ["org.example.second"], "it reads the version")
        _ = try await scene.handoffSwitch.set(false, for: "org.example.second")
        #expect(try await scene.choose(page) == [], "nobody reads the version, but the default browser does")
        page.version = 1
        for identifier in ["org.example.browser", "org.example.second"] {
            _ = try await scene.handoffSwitch.set(false, for: identifier)
        }
        #expect(try await scene.choose(page) == [], "the default browser has it")
    }

    private func failure(_ scene: Scene, _ candidate: ApplicationChoice.Candidate) async -> HandoffError.Code? {
        await error(scene, candidate)?.code
    }

    private func error(_ scene: Scene, _ candidate: ApplicationChoice.Candidate) async -> HandoffError? {
        do throws(HandoffError) {
            _ = try await scene.applications.started(
                candidate, of: .none, continuing: Self.type, for: Self.type)
            return nil
        } catch {
            return error
        }
    }
}
