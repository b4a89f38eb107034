// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import BatonDocuments
import BatonMessages
import FoundationEssentials
import Glibc
import SystemPackage

/// The offer that the user asked for. Everything is checked that needs no file.
struct OfferDraft: Sendable {
    enum Subject: Sendable, Equatable {
        case document(OfferedPaths)
        case webPage(String)
        case activity(type: String)
    }

    /// The longest title: 1,024 bytes. Listings show all of it; the advertisement only its beginning.
    static let maximumTitleSize = 1024

    let subject: Subject
    let title: String
    let webPageURL: String
    let userInfo: UserInfoSource
    let isExclusive: Bool
    /// The command that serves each stream; `nil` if the activity has no streams.
    let command: ServedCommand?

    init(
        paths: [FilePath] = [], url: String? = nil, type: String? = nil, title: String? = nil,
        userInfo: CommandArgument? = nil, webPageURL: String? = nil, serve: CommandArgument? = nil,
        throughShell: Bool = false, isExclusive: Bool = false
    ) throws(CommandError) {
        switch (paths.isEmpty, url, type) {
        case (false, nil, nil): subject = .document(try OfferedPaths(paths))
        case (true, let url?, nil): subject = .webPage(try Self.checkedURL(url, option: "--url"))
        case (true, nil, let type?): subject = .activity(type: try Self.checkedType(type))
        case (true, nil, nil):
            throw .usage("nothing to offer: name a document, or give --url URL or --type TYPE")
        case _:
            throw .usage("offer one thing at a time: documents, --url URL or --type TYPE")
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
        let unnamed = if case .document(let paths) = subject { paths.title } else { "" }
        self.title = title ?? unnamed
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

    /// The absolute path of the document; `nil` for any other offer.
    var documentPath: FilePath? {
        guard case .document(let paths) = subject else { return nil }
        return paths.document
    }

    func request() throws(CommandError) -> WireOfferRequest {
        var request = WireOfferRequest()
        request.title = title
        request.exclusive = isExclusive
        request.needsSave = userInfo.isReadAgain
        request.supportsContinuationStreams = command != nil
        switch subject {
        // The node chooses the type, and the title of one document: it knows the name that other devices see.
        case .document(let paths) where paths.selection.isAll: request.documentPath = .init(paths.document.bytes)
        case .document(let paths):
            request.folderEntries.folder = .init(paths.document.bytes)
            request.folderEntries.names = paths.selection.names.map { .init($0) }
        case .webPage(let url): request.webPageURL = url
        case .activity(let type):
            request.type = type
            request.webPageURL = webPageURL
            request.userInfo = try userInfo.read().message
        }
        return request
    }

    /// A warning: entries of the folder that are not sent, or large user info; nil if there is none.
    ///
    /// - Throws: ``CommandError`` for a document that cannot be offered.
    func warning() throws(CommandError) -> String? {
        if case .document(let paths) = subject {
            do {
                return try DocumentScan.scan(paths.document, paths.selection).leftOut.message
            } catch {
                throw CommandError(HandoffError(.documentUnreadable, error.message))
            }
        }
        let size = try userInfo.read().encodedSize
        guard size > UserInfo.recommendedSize else { return nil }
        return "the user info has \(size) bytes; over \(UserInfo.recommendedSize) it slows the handoff down, and a"
            + " document or --serve is the better place"
    }

    private static func checkedType(_ type: String) throws(CommandError) -> String {
        guard UserActivity.isType(type) else {
            throw .usage(
                "a type is 1 to \(UserActivity.maximumTypeSize) letters, digits, dots and hyphens in reverse DNS form,"
                    + " such as org.example.note")
        }
        return type
    }

    private static func checkedURL(_ text: String, option: String) throws(CommandError) -> String {
        do {
            guard let url = URL(string: text) else { throw UserActivityError(.invalid, "it is no URL") }
            try UserActivity.requireWebPage(url)
        } catch {
            throw .usage("\(option): \"\(SafeText.escaped(text))\": \(error)")
        }
        return text
    }
}

/// The source of the user info: the command line, a pipe that is read once, or a file that is read again each time.
struct UserInfoSource: Sendable {
    private enum Origin {
        case none
        case text([UInt8])
        case file(FilePath)
    }

    private let origin: Origin

    /// Whether each device that accepts gets what the file then has. Anything else is fixed, and nobody is asked for
    /// it.
    var isReadAgain: Bool {
        if case .file = origin { true } else { false }
    }

    init(_ argument: CommandArgument?) throws(CommandError) {
        switch argument {
        case nil:
            origin = .none
        case let argument? where argument.hasPrefix("@"):
            guard let path = argument.dropFirst()?.path else {
                throw .usage("--user-info @ names no file: write @FILE, or the JSON itself")
            }
            // Each accept reads a file again. A pipe can only be read once.
            let isPipe = (try? path.stat().type) == .fifo
            origin = isPipe ? .text(try Self.contents(path)) : .file(path)
        case let argument?:
            origin = .text(argument.bytes)
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
        let shown = path.shown
        // This is far more than the limit of user info. A large file given by mistake is not read to its end.
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
