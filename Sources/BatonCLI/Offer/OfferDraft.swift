// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import BatonDocuments
import BatonMessages
import FoundationEssentials
import Glibc
import SystemPackage

/// What the user wants to offer, checked as far as it can be without looking at files.
struct OfferDraft: Sendable {
    enum Subject: Sendable, Equatable {
        case document(FilePath)
        case webPage(String)
        case activity(type: String)
    }

    /// Bytes of a type at the most: what the advertisement has room for.
    static let maximumTypeSize = 96
    /// Bytes of a title at the most. The advertisement cuts it shorter; a listing does not.
    static let maximumTitleSize = 1024

    let subject: Subject
    let title: String
    let webPageURL: String
    let userInfo: UserInfoSource
    let isExclusive: Bool
    private let command: ServedCommand?

    init(
        path: FilePath? = nil, url: String? = nil, type: String? = nil, title: String? = nil, userInfo: String? = nil,
        webPageURL: String? = nil, serve: String? = nil, throughShell: Bool = false, isExclusive: Bool = false
    ) throws(CommandError) {
        switch (path, url, type) {
        case (let path?, nil, nil): subject = .document(path)
        case (nil, let url?, nil): subject = .webPage(try Self.checkedURL(url, option: "--url"))
        case (nil, nil, let type?): subject = .activity(type: try Self.checkedType(type))
        case (nil, nil, nil):
            throw .usage("nothing to offer: name a document, or give --url URL or --type TYPE")
        case _:
            throw .usage("offer one thing at a time: a document, --url URL or --type TYPE")
        }
        if case .activity = subject {
        } else if userInfo != nil || webPageURL != nil || serve != nil {
            throw .usage(
                "--user-info, --web-page-url and --serve belong to an activity: give its type with --type TYPE")
        }
        if throughShell, serve == nil {
            throw .usage("--shell says how to run the command of --serve, which is missing")
        }
        if let title, title.utf8.count > Self.maximumTitleSize {
            throw .usage(
                "the title has \(title.utf8.count) bytes, and \(Self.maximumTitleSize) are the most; shorten it")
        }
        self.title = title ?? ""
        self.webPageURL =
            try webPageURL.map { (url) throws(CommandError) in
                try Self.checkedURL(url, option: "--web-page-url")
            } ?? ""
        self.userInfo = try UserInfoSource(userInfo)
        self.isExclusive = isExclusive
        do {
            command = try serve.map { (line) throws(CommandLineSplitter.Problem) in
                try ServedCommand(line, throughShell: throughShell)
            }
        } catch {
            throw .usage(error.sentence(about: "the command of --serve"))
        }
    }

    /// Where the document is that is offered; `nil` for anything else.
    var documentPath: FilePath? {
        guard case .document(let path) = subject else { return nil }
        return CommandEnvironment.absolute(path)
    }

    /// What runs for each stream; `nil` where the activity has none.
    func served() -> ServedCommand? { command }

    /// What may change while it is offered, as it is now.
    struct State {
        var documentPath: FilePath?
        var webPageURL = ""
        var userInfo = UserInfo()
    }

    /// Reads what has to be read again for each device that takes it.
    func state() throws(CommandError) -> State {
        switch subject {
        case .document(let path): State(documentPath: try DocumentCheck.check(path))
        case .webPage(let url): State(webPageURL: url)
        case .activity: State(webPageURL: webPageURL, userInfo: try userInfo.read())
        }
    }

    /// The request to the node, with everything that has to be read now.
    func request() throws(CommandError) -> WireOfferRequest {
        let state = try state()
        var request = WireOfferRequest()
        request.title = title
        request.exclusive = isExclusive
        request.needsSave = true
        request.supportsContinuationStreams = command != nil
        request.webPageURL = state.webPageURL
        // Type and title of a document are the node's choice: it knows its name as other devices may see it.
        request.documentPath = state.documentPath.map { .init($0.bytes) } ?? .init()
        if case .activity(let type) = subject {
            request.type = type
            request.userInfo = state.userInfo.message
        }
        return request
    }

    /// What the user should know: what of a folder will not be sent, or that the user info is large.
    func warning() throws(CommandError) -> String? {
        if case .document(let path) = subject { return try DocumentCheck.leftOut(of: path) }
        let size = try userInfo.read().encodedSize
        guard size > UserInfo.recommendedSize else { return nil }
        return "the user info has \(size) bytes; over \(UserInfo.recommendedSize) it slows the handoff down, and a"
            + " document or --serve is the better place"
    }

    private static func checkedType(_ type: String) throws(CommandError) -> String {
        guard !type.isEmpty, type.utf8.count <= maximumTypeSize else {
            throw .usage("the type has \(type.utf8.count) bytes; 1 to \(maximumTypeSize) are possible")
        }
        guard type.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || ".-_".contains($0)) }) else {
            throw .usage("a type is letters, digits, dots and hyphens in reverse DNS form, such as org.example.note")
        }
        return type
    }

    private static func checkedURL(_ text: String, option: String) throws(CommandError) -> String {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), let host = url.host(), !host.isEmpty,
            scheme == "http" || scheme == "https"
        else {
            throw .usage(
                "\(option): \"\(SafeText.escaped(text))\" is no web page; one begins with https:// or http://")
        }
        guard text.utf8.count <= 8 << 10 else { throw .usage("\(option): the URL is over 8 KB long") }
        return text
    }
}

/// Where the user info comes from: the command line, a pipe that is read once, or a file that is read anew each time.
struct UserInfoSource: Sendable {
    private enum Origin {
        case none
        case text([UInt8])
        case file(FilePath)
    }

    private let origin: Origin

    init(_ text: String?) throws(CommandError) {
        switch text {
        case nil:
            origin = .none
        case let text? where text.hasPrefix("@"):
            let path = FilePath(bytes: RawArguments.bytes(of: String(text.dropFirst())))
            // Another device's accepting asks again, and a pipe says everything only once.
            let isPipe = (try? path.stat().type) == .fifo
            origin = isPipe ? .text(try Self.contents(path)) : .file(path)
        case let text?:
            origin = .text(Array(text.utf8))
        }
    }

    func read() throws(CommandError) -> UserInfo {
        let userInfo: UserInfo
        do {
            switch origin {
            case .none: return UserInfo()
            case .text(let text): userInfo = try UserInfo(json: text)
            case .file(let path): userInfo = try UserInfo(json: try Self.contents(path))
            }
            try userInfo.validate()
        } catch let error as UserInfoError {
            throw .usage("\(error)")
        } catch let error as CommandError {
            throw error
        } catch {
            throw .usage("user info: \(error)")
        }
        return userInfo
    }

    private static func contents(_ path: FilePath) throws(CommandError) -> [UInt8] {
        let shown = SafeText.escaped(path: path.bytes)
        // Far more than user info may have, so that a file given by mistake is not read whole.
        let limit = 1 << 20
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            return try file.closeAfter {
                var bytes: [UInt8] = []
                var chunk = [UInt8](repeating: 0, count: 64 << 10)
                while bytes.count <= limit {
                    let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0) }
                    if count == 0 { return bytes }
                    bytes += chunk[..<count]
                }
                throw CommandError.usage(
                    "user info: the file \(shown) is over 1 MiB; \(UserInfo.maximumSize) bytes are the most")
            }
        } catch let error as CommandError {
            throw error
        } catch {
            throw .usage("user info: the file \(shown) cannot be read: \(error)")
        }
    }
}

/// What can be said of a document before it is offered. The node looks again when it is sent.
enum DocumentCheck {
    /// - Returns: the absolute path.
    static func check(_ path: FilePath) throws(CommandError) -> FilePath {
        let shown = SafeText.escaped(path: path.bytes)
        guard !path.isEmpty else { throw .usage("the name of the document is empty") }
        let status: Stat
        do {
            status = try path.stat()
        } catch {
            throw unreadable(
                error == .noSuchFileOrDirectory
                    ? "\(shown) does not exist: check the name" : "\(shown) cannot be offered: \(error)")
        }
        switch status.type {
        case .regular, .directory: break
        case _: throw unreadable("\(shown) is a device, a pipe or a socket: only files and folders can be offered")
        }
        guard path.withPlatformString({ access($0, R_OK) }) == 0 else {
            throw unreadable("\(shown) cannot be read (\(Errno(rawValue: errno))): see its permissions")
        }
        let absolute = CommandEnvironment.absolute(path)
        guard (try? DocumentLabel(of: absolute)) != nil else {
            throw unreadable("the folder \(shown) has no name that another device could give it: offer what is in it")
        }
        return absolute
    }

    /// What is in a folder and will not be sent; `nil` where all of it is, and for files.
    static func leftOut(of path: FilePath) throws(CommandError) -> String? {
        do {
            return try DocumentSource.survey(CommandEnvironment.absolute(path)).folder?.leftOut.message
        } catch {
            throw unreadable(error.message)
        }
    }

    private static func unreadable(_ message: String) -> CommandError {
        CommandError(.document, code: "documentUnreadable", message)
    }
}
