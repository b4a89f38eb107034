// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTestSupport
import BatonTransport
import Foundation
import SwiftProtobuf
import SystemPackage

@testable import BatonDocuments
@testable import BatonNode

/// A device of the account that answers a handoff as it likes, and the node that takes a document from it.
struct HostileOrigin: Sendable {
    /// What the manifest says.
    var name = "report.pdf"
    var size: UInt64 = 4
    var entries = 1
    /// The manifest in the place of all that: a folder and its content.
    var tree: [WireDocumentEntry]?
    /// The bytes of the document.
    var records: [UInt8]
    /// Whether END follows.
    var ends = true
    /// How long each further byte of the document takes; it comes at once if nil.
    var drip: Duration?
    /// How many bytes of a stream it takes before it reads any.
    var window = Limits().initialStreamWindow

    /// The records of a document, as an honest origin sends them.
    static func records(_ content: String) -> [UInt8] {
        let bytes = Array(content.utf8)
        let checksum = bytes.withUnsafeBytes { ChunkChecksum(of: $0) }
        return [0, 0] + bytes + Frame.bigEndian(checksum.high) + Frame.bigEndian(checksum.low)
    }

    /// Fetches the document into a folder.
    ///
    /// - Parameters:
    ///   - title: what the user has said yes to.
    ///   - type: what it was listed as.
    ///   - rule: what has said yes in the user's place.
    ///   - copies: older copies of it.
    ///   - stallDeadline: how long the node waits for more.
    ///   - leastProgress: what it takes for more.
    func fetch(
        title: String, type: String = "", by rule: AcceptPolicy.Rule? = nil, into folder: URL,
        copies: [FilePath] = [], stallDeadline: Duration = .seconds(30), leastProgress: Int = 16 << 10
    ) async throws {
        let scratch = try ScratchFolder("attack")
        defer { scratch.remove() }
        let loop = ControlLoop.loop
        var limits = Limits()
        limits.initialStreamWindow = window
        let (near, far) = try await connectedPair(on: loop, limits: limits)
        let serving = Task { await serve(far) }
        let service = DocumentService(
            offers: Offers(files: try .none()) {}, pool: BufferPool(),
            ledger: try PartFileLedger(stateFolder: scratch.filePath.appending("parts")),
            limit: TransferLimit(), stallDeadline: stallDeadline, leastProgress: leastProgress)
        defer {
            serving.cancel()
            Task {
                await near.close()
                await far.close()
            }
        }
        let claim = ClaimID()
        let plan = Handoff.Plan(
            activity: .with { ($0.title, $0.type) = (title, type) }, origin: PeerName(id: "hostile", name: "hostile"),
            candidates: [], destination: nil, rule: rule, copies: OlderCopies(copies))
        _ = try await service.fetch(
            service.describe(from: near, claim: claim), for: plan, into: DestinationFolder(FilePath(folder.path)),
            from: near, claim: claim, noting: TransferReport(), progress: { _ in })
    }

    /// Fetches the document into a folder, if it can be had: again where an answer came too late. The floods of the
    /// other suites hold both threads of Swift's pool for longer than a device may take to answer.
    func tryToFetch(
        title: String, type: String = "", by rule: AcceptPolicy.Rule? = nil, into folder: URL
    ) async throws {
        for _ in 0..<10 {
            do {
                return try await fetch(title: title, type: type, by: rule, into: folder)
            } catch let error as HandoffError {
                guard error.code == .timedOut else { return }
            }
        }
    }

    private func serve(_ connection: Connection) async {
        for await incoming in connection.incoming {
            // Each is kept until the connection ends: who hangs lets nothing go.
            Task { try? await answer(incoming) }
        }
    }

    private func answer(_ incoming: IncomingStream) async throws {
        let stream = incoming.stream
        switch try WireRequest.decode(incoming.request) {
        case .documentManifest:
            try await stream.respond(.documentManifest(.with { $0.entries = 1 }))
            let file = WireDocumentEntry.with {
                $0.name = Data(name.utf8)
                $0.size = size
                $0.executable = true
            }
            for entry in tree ?? Array(repeating: file, count: entries) { try await stream.send(record: entry) }
            await stream.finish()
        case .documentRanges:
            try await stream.respond(.documentRanges(.with { $0.chunkSize = UInt32(ChunkLayout.chunkSize) }))
            if let drip {
                for byte in records {
                    try await stream.write(Buffer(copying: [byte]))
                    try await Task.sleep(for: drip)
                }
            } else if !records.isEmpty {
                try await stream.write(Buffer(copying: records))
            }
            if ends { await stream.finish() }
        case _:
            await stream.reset(.refused)
        }
        _ = await stream.connection.ended()
    }
}

/// Two ends of a connection of this process; the first accepted.
///
