// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonProtocol
import FoundationEssentials
import SwiftProtobuf
import SystemPackage

@testable import BatonAccount
@testable import BatonApplications
@testable import BatonDocuments
@testable import BatonMessages
@testable import BatonNode

/// Requests of an application to its node over the local socket. Each offer is refused, or can be announced, listed and
/// handed over. Each registration is refused, or can be chosen.
enum LocalRequestTarget: FuzzTarget {
    static let name = "local-request"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        guard let kind = try? WireRequest.decode(Array(bytes)) else { return }
        switch kind {
        case .offer(let request):
            check(selectionIn: request)
            guard let activity = try? OfferedActivity(request, document: nil) else { return }
            try check(activity)
        case .accept(let request):
            expect((ActivityID(request.activityID) == nil) == (request.activityID.count != 16), "a misshapen id")
            check(copiesIn: request)
        case .documentRead(let request):
            try check(request)
        case .register(let request):
            check(request)
        case .accountState, .adoptState, .activityList, .payload, .documentManifest, .documentRanges,
            .continuationStream, .continued, .release,
            .status, .devices, .activities, .withdraw, .handoffSwitch, .access, .transfers, .cancelTransfer,
            .discardPart, .editDevices, .examination, .examine, .willSave, .willContinue, .continueActivity, .didFail:
            break
        }
    }

    /// A document of two chunks and a bit.
    private static let tree = {
        do {
            return try DocumentTree(file: .init(size: size), called: DocumentLabel(Array("read".utf8)))
        } catch { fatalError("\(error)") }
    }()
    private static let size: UInt64 = 2 << 20 | 5
    /// A folder of three files, of which one has no bytes.
    private static let folder = {
        do {
            var builder = DocumentTree.Builder(try DocumentLabel(Array("folder".utf8)))
            try builder.append(DocumentEntry(path: .root, kind: .folder))
            for (name, size) in [("a", 3), ("b", 0), ("c", size)] as [(String, UInt64)] {
                try builder.append(DocumentEntry(path: EntryPath(Array(name.utf8)), kind: .file(.init(size: size))))
            }
            return try builder.finish()
        } catch { fatalError("\(error)") }
    }()

    /// An application reads the part of its request that the document has, in the chunks that are asked
    /// for.
    private static func check(_ request: WireDocumentReadRequest) throws {
        let range: FileRange
        do throws(HandoffError) {
            range = try ControlService.range(of: request)
        } catch {
            return expect(
                (request.length > Handoff.readBound || (try? EntryPath(request.path)) == nil)
                    && error.code == .invalidRequest,
                "a read was refused: \(error)")
        }
        expect(request.length <= Handoff.readBound, "a read of \(request.length) bytes")
        for document in [tree, folder] { try check(range, of: document, in: request) }
    }

    /// Of a file that is there what it has, and of any other one nothing.
    private static func check(
        _ range: FileRange, of tree: DocumentTree, in request: WireDocumentReadRequest
    ) throws {
        let part: DocumentPart
        do throws(HandoffError) {
            part = try DocumentPart(range, of: DocumentDescription(tree: tree))
        } catch {
            let isThere = (0..<tree.layout.fileCount).contains { tree.entry(ofFile: $0).path == range.path }
            let isRightly =
                range.version == nil ? !isThere && error.code == .invalidRequest : error.code == .documentChanged
            return expect(isRightly, "a read of \(range.path) was refused: \(error)")
        }
        guard let file = tree.file(at: range.path), tree.entry(ofFile: file).path == range.path else {
            return expect(false, "\(range.path) is no file of the document")
        }
        let (first, size) = (tree.layout.bytes(ofFile: file).lowerBound, tree.layout.size(ofFile: file))
        let wanted = request.offset >= size ? 0 : min(request.length, size - request.offset)
        expect(part.range.count == Int(wanted), "\(part.range) is read of \(request.offset) and \(request.length)")
        expect(part.range.lowerBound >= first && part.range.upperBound <= first + size, "\(part.range) of another file")
        var (at, read) = (part.range.lowerBound, 0)
        for chunk in part.chunks {
            let bytes = part.bytes(of: chunk)
            expect(
                tree.layout.offset(of: chunk) + UInt64(bytes.lowerBound) == at
                    && bytes.upperBound <= ChunkLayout.chunkSize,
                "\(bytes) of chunk \(chunk)")
            at += UInt64(bytes.count)
            read += bytes.count
        }
        expect(read == Int(wanted), "\(read) bytes in the chunks of \(part.range)")
    }

    /// An application that is taken on has names and types within their bounds, and no others than it said.
    private static func check(_ request: WireRegisterRequest) {
        let declared: ApplicationDeclaration
        do throws(HandoffError) {
            declared = try ApplicationDeclaration(request)
        } catch {
            return expect(error.code == .invalidRequest, "\(error)")
        }
        expect(DottedName.isIdentifier(declared.identifier), "the identifier \(declared.identifier)")
        expect(
            !declared.name.isEmpty && declared.name.utf8.count <= ApplicationDeclaration.nameBound
                && declared.team.utf8.count <= ApplicationDeclaration.nameBound, "a name or a team beyond its bound")
        expect(
            declared.types.count <= ApplicationDeclaration.typesBound
                && declared.types.allSatisfy(DottedName.isActivityType)
                && declared.types == Set(request.types.map(\.type)), "the types \(declared.types)")
    }

    /// Older copies are as many as may be, each at a path that means the same to the node.
    private static func check(copiesIn request: WireAcceptRequest) {
        do throws(HandoffError) {
            let copies = try ControlService.copies(in: request)
            expect(copies.count == request.against.count && copies.count <= OlderCopy.limit, "\(copies.count) copies")
            expect(copies.allSatisfy(\.isAbsolute), "a relative path: \(copies)")
        } catch {
            expect(error.code == .invalidRequest, "\(error)")
        }
    }

    /// Selected entries are names within their bounds, each of them once.
    private static func check(selectionIn request: WireOfferRequest) {
        do throws(HandoffError) {
            let names = try OfferedActivity.selection(request.folderEntries.names).names
            expect(Set(names) == Set(request.folderEntries.names.map(Array.init)), "other names: \(names)")
            expect(Set(names).count == names.count, "a name that is there twice: \(names)")
            expect(names.allSatisfy { (try? DocumentLabel($0)) != nil }, "a name that is none: \(names)")
            expect(names.count <= DocumentSelection.nameLimit, "\(names.count) names")
        } catch {
            expect(error.code == .invalidRequest, "\(error)")
        }
    }

    private static func check(_ activity: OfferedActivity) throws {
        let response = WireResponse.OneOf_Kind.payload(
            .with {
                $0.payload = activity.payload
                $0.claimID = SampleUserInfo.id
            })
        let answer: [UInt8] = try WireResponse.with { $0.kind = response }.serializedBytes()
        expect(answer.count <= MessageLimits.size, "an offer of \(answer.count) bytes that cannot be handed over")
        _ = try WireResponse(serializedBytes: answer, options: MessageLimits.decoding)
        let advertised = AdvertisedActivity(
            id: activity.id.bytes, type: activity.type, teamTag: [UInt8](repeating: 0, count: 8), version: 0,
            title: activity.title)
        let identity = AdvertisementTarget.Fixture.shared.identity
        _ = try AdvertisementCodec.encode(
            Advertisement(
                device: identity.id, publicKey: identity.publicKey, epoch: 1, sequence: 1,
                gateNonce: [UInt8](repeating: 0, count: 16),
                content: AdvertisementContent(
                    port: 40_000, addresses: [], deviceName: String(repeating: "n", count: 63), current: advertised)))
    }

    private static func read(
        from offset: UInt64, _ length: UInt64, of path: String = ""
    ) -> WireRequest.OneOf_Kind {
        .documentRead(
            .with {
                $0.handoffID = SampleUserInfo.id
                $0.offset = offset
                $0.length = length
                $0.path = Data(path.utf8)
            })
    }

    private static func registration(
        of type: String, _ versions: ClosedRange<UInt32>, team: String = "TEAM"
    ) -> WireRequest.OneOf_Kind {
        .register(
            .with {
                $0.identifier = "org.example.editor"
                $0.team = team
                $0.types = [
                    .with {
                        $0.type = type
                        $0.oldestVersion = versions.lowerBound
                        $0.newestVersion = versions.upperBound
                    }
                ]
            })
    }

    static func seeds() throws -> [[UInt8]] {
        let offers: [(inout WireOfferRequest) -> Void] = [
            { $0.type = "org.example.note" },
            {
                $0.type = "org.example.note"
                $0.title = "A\u{1B}[2J title"
                $0.userInfo = SampleUserInfo.message
                $0.webPageURL = "http://example.org:8080/ü?a=b"
                $0.needsSave = true
            }, { $0.webPageURL = "https://[fe80::1%25eth0]/" }, { $0.webPageURL = "javascript:alert(1)" },
            {
                $0.type = "a b"
                $0.exclusive = true
            },
            {
                $0.folderEntries.folder = Data("/a".utf8)
                $0.folderEntries.names = ["c", "b", "c"].map { Data($0.utf8) }
            }, { $0.folderEntries.names = [Data("../a".utf8), Data()] },
            { $0.title = String(repeating: "👩‍👩‍👧‍👦", count: 41) },
        ]
        let requests: [WireRequest.OneOf_Kind] =
            offers.map { change in .offer(.with(change)) } + [
                .accept(
                    .with {
                        $0.activityID = SampleUserInfo.id
                        $0.destination = SampleUserInfo.id
                    }),
                .accept(
                    .with {
                        $0.activityID = SampleUserInfo.id
                        $0.against = ["/a/b", "/", "c", "/d\0e"].map { Data($0.utf8) }
                    }), .withdraw(.with { $0.idPrefix = "0" }), registration(of: "org.example.note", 1...2),
                registration(of: "a b", 0...0),
                registration(of: "org.example.note", 0...1, team: String(repeating: "t", count: 256)),
                read(from: 1, 2, of: "c"), read(from: 0, 1, of: "../a"),
            ]
            + [(0, size), (1 << 20 - 1, 2), (size - 1, 9), (.max, 1), (0, Handoff.readBound + 1)].map {
                read(from: $0, $1)
            }
        return try requests.map { kind in try WireRequest.with { $0.kind = kind }.serializedBytes() }
    }
}
