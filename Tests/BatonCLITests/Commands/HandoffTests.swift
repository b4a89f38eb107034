// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Glibc
import Subprocess
import SwiftProtobuf
import Synchronization
import SystemPackage
import Testing

@testable import BatonCLI

/// Activities of the scripted node.
enum Script {
    static func listing(_ id: UInt8, kind: WireActivityKind = .application, device: String = "laptop")
        -> WireActivityListing
    {
        .with {
            $0.activity = .with {
                $0.id = Data(repeating: id, count: 16)
                $0.kind = kind
                $0.type = "org.example.note"
                $0.title = "Note \(id)"
                $0.documentSize = kind == .document ? 1000 : 0
                $0.since = UInt64(id)
            }
            $0.device = device
            $0.deviceID = device + "id"
        }
    }

    static func send(_ listings: [WireActivityListing], on stream: BatonTransport.Stream) async throws {
        try await stream.respond(.activities(.init()))
        for listing in listings { try await stream.send(record: listing) }
        await stream.finish()
    }
}

@Suite("Commands and a node", .serialized)
struct HandoffTests {
    @Test("accept takes the only one, prints its payload, and JSON has every event")
    func acceptOne() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept(let request):
                #expect(request.activityID == Data(repeating: 7, count: 16))
                #expect(request.destination.isEmpty)
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(
                    record: WireAcceptEvent.with {
                        $0.willContinue = .with {
                            $0.type = "t"
                            $0.device = "laptop"
                        }
                    })
                try await stream.send(
                    record: WireAcceptEvent.with {
                        $0.payload = .with {
                            $0.summary = Script.listing(7).activity
                            $0.userInfo = (["page": 3] as UserInfo).message
                        }
                    })
                try await stream.send(record: WireAcceptEvent.with { $0.continued = .init() })
                await stream.finish()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let plain = try await BuiltCommand.run(["accept"], home: node.folder)
        #expect(plain.status == 0, "\(plain.errors)")
        #expect(plain.output.contains(#"user info  {"page":3}"#))
        let json = try await BuiltCommand.run(["accept", "--json"], home: node.folder)
        #expect(json.status == 0)
        let events = try json.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        #expect(events.map { $0["event"] } == ["willContinue", "payload", "continued"])
        #expect(events[1]["userInfo"]?["page"] == .integer(3))
        guard case .real(let elapsed)? = events[1]["elapsed"] else { throw HandoffError(.internal, "no time") }
        #expect(elapsed > 0 && elapsed < 60)
        #expect(events.allSatisfy { $0["time"] != nil })
    }

    @Test("What the application shows by itself the command does not; a page's application is known behind the page")
    func shown() async throws {
        let isShown = Mutex(false)
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept:
                let reader = WireInstalledApplication.with { $0.name = "Reader" }
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                for isPage in [false, true] {
                    try await stream.send(
                        record: WireAcceptEvent.with {
                            $0.willContinue.device = "laptop"
                            $0.willContinue.shown = isShown.withLock { $0 }
                            if isPage { $0.willContinue.application = reader }
                        })
                }
                try await stream.send(
                    record: WireAcceptEvent.with { $0.continued = .with { $0.application = reader } })
                await stream.finish()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        for shows in [false, true] {
            isShown.withLock { $0 = shows }
            let plain = try await BuiltCommand.run(["accept"], home: node.folder)
            #expect(plain.errors.contains("from laptop\n") == !shows, "\(plain.errors)")
            #expect(plain.errors.contains("continuing it in Reader\n") == !shows, "\(plain.errors)")
            #expect(plain.errors.contains("Reader has it"), "\(plain.errors)")
            let json = try await BuiltCommand.run(["accept", "--json"], home: node.folder)
            let events = try json.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
            #expect(events.map { $0["event"] } == ["willContinue", "willContinue", "continued"])
            #expect(events.prefix(2).allSatisfy { $0["shown"] == .boolean(shows) })
            #expect(events[0]["applicationName"] == nil && events[1]["applicationName"] == "Reader")
        }
    }

    @Test("a stream whose program failed prints all that came, and fails with its status", arguments: [false, true])
    func failedStream(isJSON: Bool) async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(record: WireAcceptEvent.with { $0.continued = .init() })
                while try await stream.read() != nil {}
            case .continuationStream:
                try await stream.respond(.continuationStream(.init()))
                try await stream.write(Buffer(copying: [UInt8](repeating: 65, count: 100_000)))
                await stream.fail(status: 143)
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await BuiltCommand.run(["accept", "--stream"] + (isJSON ? ["--json"] : []), home: node.folder)
        #expect(result.status == ExitStatus.failed.rawValue)
        #expect(result.output == String(repeating: "A", count: 100_000))
        #expect(result.errors.contains("status 143") && result.errors.contains("cut short"), "\(result.errors)")
        #expect(result.errors.contains(#""code":"streamFailed""#) == isJSON)
    }

    @Test("bytes behind the end of a document are no success, and an empty document is one")
    func rangeBehindTheEnd() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7, kind: .document)], on: stream)
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(record: WireAcceptEvent.with { $0.continued = .init() })
                while try await stream.read() != nil {}
            case .documentRead:
                try await stream.respond(.documentRead(.init()))
                await stream.finish()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let beyond = try await BuiltCommand.run(["accept", "--range", "1000-2000"], home: node.folder)
        #expect(beyond.status == ExitStatus.usage.rawValue && beyond.output.isEmpty)
        #expect(beyond.errors.contains("it has 1000 bytes"), "\(beyond.errors)")
        #expect(try await BuiltCommand.run(["accept", "--range", "0-"], home: node.folder).status == 0)
    }

    @Test("accept --wait says that it waits, and only if it does", arguments: [false, true])
    func saidWait(isThere: Bool) async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities(let request) where request.watch:
                try await stream.respond(.activities(.init()))
                let listed = WireActivityListing.with { $0.change = .listed }
                let listing = Script.listing(7)
                for record in isThere ? [listing, listed] : [listed] { try await stream.send(record: record) }
                if !isThere { try await stream.send(record: listing) }
                await stream.untilClosedOrCancelled()
            case .accept:
                throw HandoffError(.unsupported, "not in this script")
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await BuiltCommand.run(["accept", "--wait", "30"], home: node.folder)
        #expect(result.errors.contains("waiting for up to 30 s") != isThere, "\(result.errors)")
        #expect(result.errors.contains("not in this script"))
    }

    @Test("a served process that only reads does not wake the command")
    func idleServing() async throws {
        let isServing = Mutex(false)
        let node = try ScriptedNode { request, stream, connection in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            try await stream.respond(.offer(.with { $0.activityID = Data(count: 16) }))
            let (_, served) = try await connection.request(.continuationStream(.with { $0.device = "desktop" }))
            await served.finish()
            isServing.withLock { $0 = true }
            while try await stream.read() != nil {}
            withExtendedLifetime(served) {}
        }
        let command = try ChildProcess(
            [BuiltCommand.path.string, "offer", "--type", "a", "--serve", "exec >&-; sleep 1000", "--shell"],
            environment: ProcessInfo.processInfo.environment.merging(["BATON_HOME": node.folder]) { $1 },
            output: .null, error: .null)
        try #require(await eventually { isServing.withLock { $0 } })
        let tasks = "/proc/\(command.processIdentifier)/task"
        @Sendable func wakes() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: tasks).reduce(0) { sum, task in
                let status = FileManager.default.contents(atPath: "\(tasks)/\(task)/status") ?? Data()
                let line = String(decoding: status, as: UTF8.self).firstMatch(of: /\nvoluntary_ctxt_switches:\s+(\d+)/)
                return sum + (line.flatMap { Int($0.1) } ?? 0)
            }
        }
        #expect(
            try await eventually {
                let before = try wakes()
                try await Task.sleep(for: .seconds(1))
                return try wakes() - before < 3
            })
    }

    @Test("several and nobody to ask: the list; --latest and --from choose")
    func several() async throws {
        let chosen = Mutex<[UInt8?]>([])
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities:
                try await Script.send([Script.listing(0x17), Script.listing(0x29, device: "phone")], on: stream)
            case .accept(let request):
                chosen.withLock { $0.append(request.activityID.first) }
                throw HandoffError(.peerUnreachable, "phone did not answer")
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let asked = try await BuiltCommand.run(["accept"], home: node.folder)
        #expect(asked.status == ExitStatus.usage.rawValue)
        #expect(asked.errors.contains("17171717") && asked.errors.contains("phone"))
        for arguments in [["accept", "--latest"], ["accept", "29"], ["accept", "--from", "PHONE"]] {
            let result = try await BuiltCommand.run(arguments, home: node.folder)
            #expect(result.status == ExitStatus.unreachable.rawValue, "\(result.errors)")
        }
        #expect(chosen.withLock { $0 } == [0x29, 0x29, 0x29])
        let missing = try await BuiltCommand.run(["accept", "ffff", "--json"], home: node.folder)
        #expect(missing.status == ExitStatus.noSuchActivity.rawValue)
        #expect(try JSONParser.parse(missing.output)["code"] == "noSuchActivity")
    }

    @Test("accept of what was replaced says by what; what nobody has named is looked for again")
    func replaced() async throws {
        let accepts = Mutex<[WireAcceptRequest]>([])
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities(let request):
                #expect(request.withRefused)
                var gone = Script.listing(0x17)
                gone.change = .removed
                try await Script.send([Script.listing(0x29), gone], on: stream)
            case .accept(let request):
                accepts.withLock { $0.append(request) }
                throw HandoffError(.noSuchActivity, "laptop no longer offers the activity", device: "laptop")
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let named = try await BuiltCommand.run(["accept", "17"], home: node.folder)
        #expect(named.status == ExitStatus.noSuchActivity.rawValue)
        #expect(
            named.errors.contains("laptop no longer offers Note 23; it offers Note 41 now, 29292929"), "\(named.errors)"
        )
        #expect(accepts.withLock { $0.isEmpty })
        let late = try await BuiltCommand.run(["accept", "29"], home: node.folder)
        #expect(late.status == ExitStatus.noSuchActivity.rawValue)
        #expect(accepts.withLock { $0.map(\.shownTitle) } == ["Note 41"], "it was named, and is asked for once")
        accepts.withLock { $0 = [] }
        let latest = try await BuiltCommand.run(["accept", "--latest", "--json"], home: node.folder)
        #expect(latest.status == ExitStatus.noSuchActivity.rawValue)
        #expect(accepts.withLock { $0.count } == 5, "as often as the bound says")
        #expect(latest.output.split(separator: "\n").count == 1, "\(latest.output)")
    }

    @Test("accept --wait takes what comes while it waits, and gives up in time")
    func waiting() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities(let request) where !request.watch:
                // When the time is over, the command asks for the reason that there is nothing.
                var refused = Script.listing(3, device: "tablet")
                refused.refusedBy = "line 2"
                try await Script.send([Script.listing(1, device: "phone"), refused], on: stream)
            case .activities:
                try await stream.respond(.activities(.init()))
                try await stream.send(record: WireActivityListing.with { $0.change = .listed })
                var other = Script.listing(1, device: "phone")
                other.change = .added
                try await stream.send(record: other)
                var wanted = Script.listing(2)
                wanted.change = .added
                try await stream.send(record: wanted)
                while try await stream.read() != nil {}
            case .accept: throw HandoffError(.claimHeld, "it is taken", device: "tablet")
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let found = try await BuiltCommand.run(["accept", "--from", "laptop", "--wait", "20"], home: node.folder)
        #expect(found.status == ExitStatus.refused.rawValue)
        #expect(found.errors.contains("tablet has it"))
        let late = try await BuiltCommand.run(["accept", "--from", "watch", "--wait", "0.2"], home: node.folder)
        #expect(late.status == ExitStatus.noSuchActivity.rawValue)
        let refused = try await BuiltCommand.run(["accept", "--from", "tablet", "--wait", "0.2"], home: node.folder)
        #expect(refused.status == ExitStatus.refused.rawValue && refused.errors.contains("line 2"), "\(refused.errors)")
    }

    @Test("a document: the path is on standard output")
    func document() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7, kind: .document)], on: stream)
            case .accept(let request):
                let folder = String(decoding: request.destination, as: UTF8.self)
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(
                    record: WireAcceptEvent.with { $0.payload = .with { $0.summary = Script.listing(7).activity } })
                for bytes in [0, 500, 1000] as [UInt64] {
                    try await stream.send(
                        record: WireAcceptEvent.with {
                            $0.progress = .with {
                                $0.bytes = bytes
                                $0.total = 1000
                            }
                        })
                }
                try await stream.send(
                    record: WireAcceptEvent.with {
                        $0.continued = .with {
                            $0.path = Data((folder + "/a b.pdf").utf8)
                            $0.bytes = 1000
                        }
                    })
                await stream.finish()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await BuiltCommand.run(["accept", "--to", "run"], home: node.folder, in: node.folder)
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output == node.folder + "/run/a b.pdf\n")
        #expect(!result.errors.contains("\r"))
        let json = try await BuiltCommand.run(["accept", "--json", "--to", "run"], home: node.folder, in: node.folder)
        let events = try json.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        let progress = events.filter { $0["event"] == "progress" }
        // The document is complete when it has been continued, and not before.
        #expect(progress.map { $0["bytes"] } == [.integer(0), .integer(500), .integer(999)])
        #expect(progress.allSatisfy { $0["total"] == .integer(1000) && $0["rate"] != nil && $0["secondsLeft"] != nil })
        #expect(events.last?["event"] == "continued" && events.last?["bytes"] == .integer(1000))
    }

    @Test("a stream: both directions at once, binary, half-closed")
    func stream() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept(let request):
                #expect(request.streams)
                try await stream.respond(.accept(.with { $0.handoffID = Data(repeating: 9, count: 16) }))
                try await stream.send(record: WireAcceptEvent.with { $0.continued = .init() })
                // The command ends its direction when it has everything.
                while try await stream.read() != nil {}
                await stream.finish()
            case .continuationStream(let request):
                #expect(request.claimID == Data(repeating: 9, count: 16))
                try await stream.respond(.continuationStream(.init()))
                var count = 0
                while let buffer = try await stream.read() {
                    count += buffer.count
                    try await stream.write(Buffer(copying: buffer.bytes))
                }
                // This comes after the END of the other direction, which closes only that one.
                try await stream.write(Buffer(copying: Array("\n\(count)".utf8)))
                await stream.finish()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let text = String(repeating: "\u{0}é\r\n\u{4}", count: 700_000)
        let result = try await BuiltCommand.run(["accept", "--stream"], home: node.folder, input: text)
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output == text + "\n\(text.utf8.count)")
    }

    @Test("an abort of the stream is told, and what came stays")
    func abortedStream() async throws {
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(record: WireAcceptEvent.with { $0.continued = .init() })
                while try await stream.read() != nil {}
            case .continuationStream:
                try await stream.respond(.continuationStream(.init()))
                await stream.reset(.cancelled)
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await BuiltCommand.run(["accept", "--stream"], home: node.folder)
        #expect(result.status == ExitStatus.unreachable.rawValue)
        #expect(result.errors.contains("cut short"))
    }

    @Test("a node that goes away in the middle is told as such")
    func nodeDies() async throws {
        let node = try ScriptedNode { request, stream, connection in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                await connection.close()
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await BuiltCommand.run(["accept"], home: node.folder)
        #expect(result.status == ExitStatus.noNode.rawValue, "\(result.errors)")
        #expect(result.errors.contains("the node has stopped"))
    }

    @Test("an offer goes on at the next node, whichever way the one before went away")
    func offersAgain() async throws {
        let offers = Mutex<UInt8>(0)
        let node = try ScriptedNode { request, stream, connection in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            let number = offers.withLock { count in
                count += 1
                return count
            }
            guard number != 3 else { throw HandoffError(.nodeStopping, "stopping still") }
            try await stream.respond(.offer(.with { $0.activityID = Data(repeating: number, count: 16) }))
            switch number {
            case 1: await connection.close()
            case 2:
                try await stream.send(
                    record: WireOfferEvent.with { $0.failed = HandoffError(.nodeStopping, "stopping").failure })
                await connection.close()
            default:
                try await stream.send(
                    record: WireOfferEvent.with {
                        $0.continued = .with {
                            $0.device = "desktop"
                            $0.deviceID = "d"
                        }
                    })
                while try await stream.read() != nil {}
                try await stream.send(record: WireOfferEvent.with { $0.withdrawn = .init() })
                await stream.finish()
            }
        }
        let result = try await BuiltCommand.run(
            ["offer", "--type", "org.example.a", "--once", "--json"], home: node.folder)
        #expect(result.status == 0, "\(result.errors)")
        let events = try result.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        #expect(
            events.map { $0["event"] } == [
                "offered", "nodeLost", "offered", "nodeLost", "offered", "continued", "withdrawn",
            ])
        #expect(events[4]["id"] == .string(String(repeating: "04", count: 16)))
    }

    @Test("an offer that every node stops of is given up")
    func offerThatNodesStopOf() async throws {
        let offers = Mutex(0)
        let node = try ScriptedNode { request, stream, connection in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            offers.withLock { $0 += 1 }
            try await stream.respond(.offer(.with { $0.activityID = Data(count: 16) }))
            await connection.close()
        }
        let result = try await BuiltCommand.run(["offer", "--type", "org.example.a"], home: node.folder)
        #expect(result.status == ExitStatus.noNode.rawValue, "\(result.errors)")
        #expect(result.errors.contains("soon after it was given this offer"))
        #expect(offers.withLock { $0 } == OfferRun.lossLimit)
    }

    @Test("A read that is refused because something has changed is tried again")
    func readAgain() async throws {
        let requests = Mutex<[WireDocumentReadRequest]>([])
        let node = try ScriptedNode { request, stream, _ in
            guard case .documentRead(let read) = request else { throw HandoffError(.unsupported, "not in this script") }
            let number = requests.withLock { requests in
                requests.append(read)
                return requests.count
            }
            guard number > 1 else { throw HandoffError(.documentChanged, "it has changed") }
            try await stream.respond(.documentRead(.with { $0.version = Data([7]) }))
            _ = try await stream.write(Buffer(copying: [1, 2, 3]))
            await stream.finish()
        }
        let client = try await NodeClient.connect(to: node.home)
        var bytes: [UInt8] = []
        let count = try await client.readDocument(0..<3, ofHandoff: [], ofFile: []) { bytes += $0 }
        #expect(count == 3 && bytes == [1, 2, 3])
        #expect(requests.withLock(\.count) == 2)
        await client.close()
    }

    @Test("^C ends an offer whose document the node still looks at, and closes the connection that it was asked by")
    func interruptedLook() async throws {
        let looking = Mutex(false)
        let closed = Mutex(false)
        let node = try ScriptedNode { request, stream, _ in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            looking.withLock { $0 = true }
            while (try? await stream.read()) ?? nil != nil {}
            closed.withLock { $0 = true }
        }
        let document = node.folder + "/report.txt"
        try Data("text".utf8).write(to: URL(fileURLWithPath: document))
        let command = try ChildProcess(
            [BuiltCommand.path.string, "offer", document],
            environment: ProcessInfo.processInfo.environment.merging(["BATON_HOME": node.folder]) { $1 },
            output: .null, error: .file(node.folder + "/errors"))
        try #require(await eventually { looking.withLock { $0 } })
        command.signal(SIGINT)
        try #require(await eventually { !command.isRunning })
        #expect(command.ending == .exited(130))
        #expect(await eventually { closed.withLock { $0 } })
    }

    @Test("The next node is waited for until the time is over, and no longer")
    func noNextNode() async {
        await #expect(processExitsWith: .success) {
            setenv("BATON_HOME", "/nonexistent", 1)
            let (start, patience) = (ContinuousClock.now, Duration.milliseconds(700))
            let node = try await NodeAccess.connectAgain(until: start + patience) { false }
            #expect(node == nil && ContinuousClock.now - start >= patience)
            // A caller that no longer needs a node does not wait.
            let never = try await NodeAccess.connectAgain(until: .now + OfferRun.patience) { true }
            #expect(never == nil && ContinuousClock.now - start < OfferRun.patience)
        }
        #expect(OfferRun.patience == .seconds(600))
    }

    @Test("^C ends the wait for the next node")
    func waitForTheNextNode() async throws {
        let running = Mutex<ScriptedNode?>(nil)
        let node = try ScriptedNode { request, stream, _ in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            try await stream.respond(.offer(.with { $0.activityID = Data(count: 16) }))
            await running.withLock { $0 }?.stop()
        }
        running.withLock { $0 = node }
        // The script keeps the node and its folder alive.
        defer { running.withLock { $0 = nil } }
        let result = try await Self.signalled(
            ["offer", "--type", "org.example.a"], .interrupt, node, when: "until one runs again")
        #expect(result == .exited(0))
    }

    @Test("offer asks its file anew, serves a stream with a command, tells who continued, and ends with --once")
    func offer() async throws {
        let answers = Mutex<[String]>([])
        let node = try ScriptedNode { request, stream, connection in
            guard case .offer(let request) = request else { throw HandoffError(.unsupported, "not in this script") }
            #expect(request.needsSave)
            #expect(request.supportsContinuationStreams)
            try await stream.respond(
                .offer(
                    .with {
                        $0.activityID = Data(repeating: 7, count: 16)
                        $0.title = "T"
                    }))
            let (saved, saving) = try await connection.request(.willSave(.with { $0.device = "desktop" }))
            await saving.finish()
            if case .willSave(let state) = saved {
                answers.withLock { $0.append((try? UserInfo(state.userInfo).jsonText) ?? "") }
            }
            try await stream.send(
                record: WireOfferEvent.with {
                    $0.continued = .with {
                        $0.device = "desktop"
                        $0.deviceID = "d"
                    }
                })
            let (_, served) = try await connection.request(.continuationStream(.with { $0.device = "desktop" }))
            try await served.write(Buffer(copying: Array("hello\u{0}".utf8)))
            await served.finish()
            var output: [UInt8] = []
            while let buffer = try await served.read() { output += buffer.bytes }
            answers.withLock { $0.append(String(decoding: output, as: UTF8.self)) }
            while try await stream.read() != nil {}
            try await stream.send(record: WireOfferEvent.with { $0.withdrawn = .init() })
            await stream.finish()
        }
        let file = node.folder + "/info.json"
        try Data(#"{"page":4}"#.utf8).write(to: URL(filePath: file))
        let result = try await BuiltCommand.run(
            ["offer", "--type", "org.example.a", "--user-info", "@" + file, "--serve", "cat", "--once", "--json"],
            home: node.folder)
        #expect(result.status == 0, "\(result.errors)")
        #expect(answers.withLock { $0 } == [#"{"page":4}"#, "hello\u{0}"])
        let events = try result.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        #expect(events.map { $0["event"] } == ["offered", "willSave", "continued", "withdrawn"])
        #expect(events[0]["id"] == .string(String(repeating: "07", count: 16)))
        #expect(events[2]["device"] == "desktop")
    }

    @Test("what two devices of one name make of an offer is told apart", arguments: [false, true])
    func sameName(isJSON: Bool) async throws {
        let node = try ScriptedNode { request, stream, _ in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            try await stream.respond(.offer(.with { $0.activityID = Data(count: 16) }))
            let taken = WireOfferEvent.Taken.with { $0.device = "ubuntu" }
            let progress = WireProgressReport.with {
                $0.device = "ubuntu"
                $0.total = 10
            }
            let failure = HandoffError(.destinationFull, "the disk is full", device: "ubuntu").failure
            let cut = HandoffError(.connectionLost, "the link was cut", device: "ubuntu").failure
            let events: [(WireOfferEvent.OneOf_Kind, UInt64)] = [
                (.taken(taken), 7), (.taken(taken), 9), (.progress(progress), 9), (.progress(progress), 7),
                (.failed(failure), 9), (.interrupted(cut), 7), (.continued(taken), 7),
            ]
            for (kind, claim) in events {
                try await stream.send(
                    record: WireOfferEvent.with {
                        $0.kind = kind
                        $0.claim = claim
                    })
            }
            while try await stream.read() != nil {}
            try await stream.send(record: WireOfferEvent.with { $0.withdrawn = .init() })
            await stream.finish()
        }
        let arguments = ["offer", "--type", "org.example.a", "--once"] + (isJSON ? ["--json"] : [])
        let result = try await BuiltCommand.run(arguments, home: node.folder)
        #expect(result.status == 0, "\(result.errors)")
        guard isJSON else {
            let lines = result.errors.split(separator: "\n").dropFirst()
            #expect(
                lines == [
                    "ubuntu is taking it over", "ubuntu (2) is taking it over",
                    "ubuntu (2) did not get it: the disk is full",
                    "ubuntu stopped receiving: the link was cut; waiting for it to go on", "continued by ubuntu",
                    "withdrawn",
                ])
            return
        }
        let events = try result.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        #expect(
            events.dropFirst().map { $0["event"] } == [
                "taken", "taken", "progress", "progress", "failed", "interrupted", "continued", "withdrawn",
            ])
        #expect(events.compactMap { $0["claim"] } == [7, 9, 9, 7, 9, 7, 7].map { UserInfoValue.integer($0) })
    }

    @Test("SIGTERM, SIGINT and SIGHUP withdraw", arguments: [Signal.terminate, .interrupt, .terminalClosed])
    func signals(_ signal: Signal) async throws {
        let withdrawn = Mutex(false)
        let node = try ScriptedNode { request, stream, _ in
            guard case .offer = request else { throw HandoffError(.unsupported, "not in this script") }
            try await stream.respond(.offer(.with { $0.activityID = Data(count: 16) }))
            // The command withdraws by END, and not by a reset.
            while try await stream.read() != nil {}
            withdrawn.withLock { $0 = true }
            try await stream.send(record: WireOfferEvent.with { $0.withdrawn = .init() })
            await stream.finish()
        }
        let result = try await Self.signalled(["offer", "--type", "org.example.a"], signal, node, when: "offering")
        #expect(result == .exited(0))
        #expect(withdrawn.withLock { $0 })
    }

    @Test("^C on accept cancels by an abort; a dead terminal detaches", arguments: [Signal.interrupt, .terminalClosed])
    func cancelled(_ signal: Signal) async throws {
        let end = Mutex<TransportError.Code?>(nil)
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: try await Script.send([Script.listing(7)], on: stream)
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(
                    record: WireAcceptEvent.with { $0.willContinue = .with { $0.device = "laptop" } })
                do {
                    while try await stream.read() != nil {}
                } catch let error as TransportError {
                    end.withLock { $0 = error.code }
                }
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await Self.signalled(["accept"], signal, node, when: "continuing")
        #expect(await eventually { end.withLock { $0 } != nil })
        if signal == .interrupt {
            #expect(result == .exited(ExitStatus.interrupted.rawValue))
            #expect(end.withLock { $0 } == .reset(.cancelled))
        } else {
            #expect(end.withLock { $0 } == .connectionLost)
        }
    }

    @Test("^C while a stream is being opened ends it as the user's wish")
    func cancelledOpening() async throws {
        let end = Mutex<TransportError.Code?>(nil)
        let opening = Mutex(false)
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities: return try await Script.send([Script.listing(7)], on: stream)
            case .accept:
                try await stream.respond(.accept(.with { $0.handoffID = Data(count: 16) }))
                try await stream.send(record: WireAcceptEvent.with { $0.continued = .init() })
                while try await stream.read() != nil {}
            case .continuationStream:
                opening.withLock { $0 = true }
                do {
                    while try await stream.read() != nil {}
                } catch let error as TransportError {
                    end.withLock { $0 = error.code }
                }
            default: throw HandoffError(.unsupported, "not in this script")
            }
        }
        let result = try await Subprocess.run(
            .path(BuiltCommand.path), arguments: ["accept", "--stream"],
            environment: .inherit.updating(["BATON_HOME": node.folder]), input: .none, output: .discarded,
            error: .discarded
        ) { execution in
            #expect(await eventually { opening.withLock(\.self) })
            try execution.send(signal: .interrupt)
        }.terminationStatus
        #expect(result == .exited(ExitStatus.interrupted.rawValue))
        #expect(await eventually { end.withLock { $0 } != nil })
        #expect(end.withLock { $0 } == .reset(.cancelled))
    }

    @Test("^C while the node has not answered yet cancels as well; before it is asked the command just ends")
    func cancelledEarly() async throws {
        let asked = Mutex<[String]>([])
        let end = Mutex<TransportError.Code?>(nil)
        let answersList = Mutex(true)
        let node = try ScriptedNode { request, stream, _ in
            switch request {
            case .activities:
                asked.withLock { $0.append("activities") }
                if answersList.withLock({ $0 }) { return try await Script.send([Script.listing(7)], on: stream) }
            case .accept: asked.withLock { $0.append("accept") }
            default: throw HandoffError(.unsupported, "not in this script")
            }
            do {
                while try await stream.read() != nil {}
            } catch let error as TransportError {
                end.withLock { $0 = error.code }
            }
        }
        func interrupted(when question: String) async throws -> TerminationStatus {
            try await Subprocess.run(
                .path(BuiltCommand.path), arguments: ["accept"],
                environment: .inherit.updating(["BATON_HOME": node.folder]), input: .none, output: .discarded,
                error: .sequence
            ) { execution in
                #expect(await eventually { asked.withLock { $0.contains(question) } })
                try execution.send(signal: .interrupt)
                for try await _ in execution.standardError {}
            }.terminationStatus
        }
        #expect(try await interrupted(when: "accept") == .exited(ExitStatus.interrupted.rawValue))
        #expect(await eventually { end.withLock { $0 } != nil })
        #expect(end.withLock { $0 } == .reset(.cancelled))

        answersList.withLock { $0 = false }
        asked.withLock { $0 = [] }
        #expect(try await interrupted(when: "activities") == .exited(ExitStatus.interrupted.rawValue))
        #expect(asked.withLock { $0 } == ["activities"])
    }

    /// Runs a command, and sends it a signal when its standard error contains a text.
    private static func signalled(
        _ arguments: [String], _ signal: Signal, _ node: ScriptedNode, when text: String
    ) async throws -> TerminationStatus {
        try await Subprocess.run(
            .path(BuiltCommand.path), arguments: Arguments(arguments),
            environment: .inherit.updating(["BATON_HOME": node.folder]), input: .none, output: .discarded,
            error: .sequence
        ) { execution in
            var said: [UInt8] = []
            var isSent = false
            for try await chunk in execution.standardError {
                said += chunk.withUnsafeBytes { Array($0) }
                if !isSent, String(decoding: said, as: UTF8.self).contains(text) {
                    isSent = true
                    try execution.send(signal: signal)
                }
            }
        }.terminationStatus
    }
}
