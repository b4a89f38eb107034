// SPDX-License-Identifier: Apache-2.0

import SwiftProtobuf
import SystemPackage

@testable import BatonDocuments
@testable import BatonMessages
@testable import BatonNode

/// URLs of files in user info: as another device's node names them, and as an application of this device does.
///
/// The first byte of an input has four bits. Bit 0: a line for each URL, or else a message. Bit 1: an application sends
/// it, whose URLs are in the shared folder. Bit 2: a document goes with it. Bit 3: this device's own copy of the
/// document is enough.
enum SharedFilesTarget: FuzzTarget {
    static let name = "shared-files"
    static let maximumLength = 2048

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        let place = try SharedFolder.shared.get()
        var input = Input(bytes)
        let setting = input.byte()
        let isSent = setting & 2 != 0
        let content = input.remainder()
        var userInfo = WireDictionaryValue()
        if setting & 1 == 0 {
            let message = try? WireDictionaryValue(serializedBytes: content, options: MessageLimits.decoding)
            guard let message else { return }
            userInfo = message
        } else {
            for (index, line) in content.split(separator: 10).prefix(8).enumerated() {
                let url = String(decoding: line, as: UTF8.self)
                userInfo.entries["\(index)"] = .with {
                    $0.url = isSent ? FileURL.path(place.folder.bytes).text + url : url
                }
            }
        }
        if isSent {
            send(userInfo, place)
        } else {
            _ = receive(userInfo, isDocument: setting & 4 != 0, takesLocal: setting & 8 != 0, place)
        }
    }

    /// Each URL of a peer leads to a file in the shared folder, or nowhere.
    ///
    /// - Returns: the URLs, in no order; `nil` where the activity is refused.
    private static func receive(
        _ userInfo: WireDictionaryValue, isDocument: Bool, takesLocal: Bool, _ place: SharedFolder
    ) -> [String]? {
        let payload = WireActivityPayload.with {
            $0.summary.kind = isDocument ? .document : .application
            $0.userInfo = userInfo
        }
        let arrival = wait { () async -> SharedFiles.Arrival? in
            do throws(HandoffError) {
                return try await place.files.incoming(payload, of: "laptop", takesLocal: takesLocal)
            } catch {
                expect(error.code == .accessRefused || error.code == .internal, "\(error.code): \(error)")
                return nil
            }
        }
        guard let arrival else { return nil }
        let urls = urls(of: arrival.payload.userInfo)
        for url in urls {
            guard FileURL.Scheme(of: url) != nil else { continue }
            switch FileURL(url) {
            case .document(nil, _)? where isDocument: break
            case .path(let bytes, _)?: checkPath(FilePath(bytes: bytes), of: url, place)
            default: fatalError("an application is given \(url)")
            }
        }
        if let local = arrival.localDocument {
            expect(takesLocal && isDocument, "a copy that nobody wanted")
            checkPath(local.path, of: local.path.string, place)
        }
        return urls
    }

    private static func checkPath(_ path: FilePath?, of url: String, _ place: SharedFolder) {
        guard let path else { fatalError("\(url) is no file of this device") }
        expect(path.starts(with: place.folder), "\(url) is outside of the shared folder")
        expect(path.lexicallyNormalized() == path, "\(url) goes up")
        if let resolved = try? FileLookup.resolved(path) {
            expect(resolved.starts(with: place.folder), "\(url) leads to \(resolved)")
        }
    }

    /// An application's offer never leaves with a path, and a device that shares the folder understands it.
    private static func send(_ userInfo: WireDictionaryValue, _ place: SharedFolder) {
        let sent = wait { () async -> (userInfo: WireDictionaryValue, document: DocumentSource?)? in
            do throws(HandoffError) {
                return try await place.files.outgoing(userInfo, document: nil)
            } catch {
                expect(error.code == .invalidRequest, "\(error.code): \(error)")
                return nil
            }
        }
        guard let sent else { return }
        let urls = urls(of: sent.userInfo)
        for url in urls {
            expect(FileURL.Scheme(of: url) != .file, "the path of \(url) leaves the device")
            guard FileURL.Scheme(of: url) != nil else { continue }
            expect(FileURL(url)?.text == url, "\(url) reads as another")
        }
        let arrived = receive(sent.userInfo, isDocument: sent.document != nil, takesLocal: true, place)
        expect(arrived?.count == urls.count, "what was offered is refused: \(urls)")
    }

    private static func urls(of userInfo: WireDictionaryValue) -> [String] { userInfo.entries.values.flatMap(urls) }

    private static func urls(of value: WireValue) -> [String] {
        switch value.kind {
        case .url(let url): [url]
        case .array(let list), .set(let list): list.elements.flatMap(urls)
        case .dictionary(let dictionary): urls(of: dictionary)
        case .null, .boolean, .integer, .unsignedInteger, .real, .string, .data, .date, .uuid, nil: []
        }
    }

    static func seeds() throws -> [[UInt8]] {
        let received = [
            "baton-root:///Docs/a", "baton-root:///Docs/d/b%3F?q#f", "baton-root:///Docs/in\nbaton-root:///Docs/d/",
            "baton-root:///Docs/out", "baton-root:///Docs/up/outside", "baton-root:///Docs/root/etc/passwd",
            "baton-root:///Docs/%2E%2E/outside", "baton-root:///Docs/a%2F..%2F..", "baton-root:///Other/a",
            "baton-root://host/Docs/a", "baton-root:///Docs/loop", "BATON-ROOT:///Docs//a", "baton-root:///Docs/%00",
            "baton-document:?page=2", "baton-document:///Docs/d/b%3F#2", "baton-document:///Docs/missing\u{301}",
            "file:///etc/passwd", "https://example.org/", "baton-document:\u{301}", "baton-root:///Docs",
        ]
        let sent = [
            "/a", "/d/b%3F?q#f\n/in", "/d/", "/../outside\n/../outside?2", "/out", "/missing", "/%", "", "/a\u{301}",
            "/a?\u{301}",
        ]
        let message = WireDictionaryValue.with { info in
            info.entries = [
                "list": .with {
                    $0.array.elements = [.with { $0.url = received[1] }, .with { $0.url = received[14] }]
                },
                "set": .with { $0.set.elements = [.with { $0.url = received[0] }] },
                "more": .with { $0.dictionary.entries = ["\u{1B}[2J": .with { $0.url = received[3] }] },
            ]
        }
        let messages: [UInt8] = try message.serializedBytes()
        return received.map { [0x0D] + Array($0.utf8) } + sent.map { [3] + Array($0.utf8) }
            + [[0x04] + messages, [0x0C] + messages, [0x05] + Array(received[14].utf8)]
    }
}
