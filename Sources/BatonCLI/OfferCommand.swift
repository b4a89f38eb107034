// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonMessages

/// `baton offer`
struct OfferCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offer",
        abstract: "Offer something to your other devices, until ^C.",
        usage: """
            baton offer <path> [--title <title>] [--exclusive] [--once] [--json]
            baton offer --url <url> [--title <title>] [--exclusive] [--once] [--json]
            baton offer --type <type> [--title <title>] [--user-info <JSON|@FILE>] \
            [--web-page-url <url>] [--serve <command>] [--shell] [--exclusive] [--once] [--json]
            """,
        discussion: """
            Offers a file, a folder, a web page, or an activity of any type. Until a device accepts it, nothing but a sealed \
            announcement of title, type and size leaves this machine.

            User info is a JSON object. Dates, URLs, data, UUIDs and sets are written as {"$date": "2026-11-21T09:30:00Z"}, \
            {"$url": "https://example.org/"}, {"$data": "aGVsbG8="}, {"$uuid": "..."} and {"$set": [1, 2]}. With @FILE it \
            is read anew for each device that continues.

            --serve runs COMMAND for each stream that the other side opens (`baton accept --stream`), with the stream as \
            its standard input and output; at most \(StreamServer.bound) at once.

            Where the node stops, the offer waits for the next one, 10 minutes at the most, and is made again there, under \
            another id; a transfer that was on its way goes on.

            EXAMPLES:
              baton offer ~/report.pdf
              baton offer ~/Photos
              baton offer --url https://swift.org/documentation/
              baton offer --type org.example.note --user-info '{"page": 3}'
              baton offer --type org.example.log --serve "tail -f /var/log/syslog"
              baton offer --type org.example.dump --serve "tar c . | xz" --shell
            """)

    @Argument(help: "The file or folder to offer.")
    var path: PathArgument?

    @Option(name: .long, help: "A web page to offer.")
    var url: String?

    @Option(name: .long, help: "The type of an activity to offer, in reverse DNS form.")
    var type: String?

    @Option(name: .long, help: "What other devices list it as.")
    var title: String?

    @Option(name: .long, help: ArgumentHelp("What the activity carries.", valueName: "JSON|@FILE"))
    var userInfo: String?

    @Option(
        name: .customLong("web-page-url"),
        help: ArgumentHelp("A web page that can stand for the activity.", valueName: "url"))
    var webPageURL: String?

    @Option(name: .long, help: ArgumentHelp("Run this for each stream of the other side.", valueName: "command"))
    var serve: String?

    @Flag(name: .long, help: "Run the command of --serve through `sh -c`.")
    var shell = false

    @Flag(name: .long, help: "Let only one device have it at a time.")
    var exclusive = false

    @Flag(name: .long, help: "End when one device has taken it over entirely.")
    var once = false

    @OptionGroup var output: JSONOption

    func run() async throws {
        let draft = try draft()
        let request = try draft.request()
        if let warning = try draft.warning() { Output.complain(warning) }
        let server = draft.served().map { StreamServer(command: $0) }
        let reporter = OfferReporter(isJSON: output.json)
        try await OfferRun(request, draft: draft, server: server, reporter: reporter, isOnce: once).run()
    }

    private func draft() throws(CommandError) -> OfferDraft {
        try OfferDraft(
            path: path?.path, url: url, type: type, title: title.map(RawArguments.repaired), userInfo: userInfo,
            webPageURL: webPageURL, serve: serve,
            throughShell: shell, isExclusive: exclusive)
    }
}
