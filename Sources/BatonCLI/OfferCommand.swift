// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages

struct OfferCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "offer",
        abstract: "Offer something to your other devices, until ^C.",
        usage: """
            baton offer <path> ... [--title <title>] [--exclusive] [--once] [--json]
            baton offer --url <url> [--title <title>] [--exclusive] [--once] [--json]
            baton offer --type <type> [--title <title>] [--user-info <JSON|@FILE>] \
            [--web-page-url <url>] [--serve <command>] [--shell] [--exclusive] [--once] [--json]
            """,
        discussion: """
            Offers a file, a folder, a web page, or an activity of any type. Until a device accepts it, only an \
            encrypted announcement of title, type and size leaves this machine.

            Several paths in one folder, at most \(DocumentSelection.nameLimit), are offered together. They arrive in \
            a folder of the same name, unless `baton accept --name` gives it another one.

            User info is a JSON object. It may contain dates {"$date": "2026-11-21T09:30:00Z"}, URLs \
            {"$url": "https://example.org/"}, data {"$data": "aGVsbG8="}, UUIDs {"$uuid": "..."} and sets \
            {"$set": [1, 2]}. With @FILE the file is read again for each device that continues.

            --serve runs COMMAND for each stream that the other side opens (`baton accept --stream`). The stream is \
            its standard input and output. At most \(StreamServer.bound) run at once. If the command fails, the other \
            side gets its exit status.

            If the node stops, the offer waits up to 10 minutes for the next node, and is made again there with \
            another id. A transfer on its way goes on.

            EXAMPLES:
              baton offer ~/report.pdf
              baton offer ~/Photos
              baton offer notes.md drawing.svg photos/
              baton offer --url https://swift.org/documentation/
              baton offer --type org.example.note --user-info '{"page": 3}'
              baton offer --type org.example.log --serve "tail -f /var/log/syslog"
              baton offer --type org.example.dump --serve "tar c . | xz" --shell
            """)

    @Argument(help: ArgumentHelp("The files and folders to offer.", valueName: "path"), completion: .file())
    var paths: [CommandArgument] = []

    @Option(name: .long, help: "A web page to offer.")
    var url: CommandArgument?

    @Option(name: .long, help: "The type of an activity to offer, in reverse DNS form.")
    var type: CommandArgument?

    @Option(name: .long, help: "The title in the lists of other devices.")
    var title: CommandArgument?

    @Option(name: .long, help: ArgumentHelp("The data of the activity.", valueName: "JSON|@FILE"))
    var userInfo: CommandArgument?

    @Option(
        name: .customLong("web-page-url"),
        help: ArgumentHelp("A web page that can stand for the activity.", valueName: "url"))
    var webPageURL: CommandArgument?

    @Option(
        name: .long, help: ArgumentHelp("Run this command for each stream of the other side.", valueName: "command"))
    var serve: CommandArgument?

    @Flag(name: .long, help: "Run the command of --serve through `sh -c`.")
    var shell = false

    @Flag(name: .long, help: "Only one device at a time can have it.")
    var exclusive = false

    @Flag(name: .long, help: "End when one device has all of it.")
    var once = false

    @OptionGroup var output: JSONOption

    func run() async throws {
        let draft = try draft()
        if let warning = try draft.warning() { Output.complain(warning) }
        let request = try draft.request()
        let server = draft.command.map { StreamServer(command: $0) }
        let reporter = OfferReporter(output: EventOutput(isJSON: output.json))
        try await OfferRun(request: request, draft: draft, server: server, reporter: reporter, isOnce: once).run()
    }

    private func draft() throws(CommandError) -> OfferDraft {
        try OfferDraft(
            paths: paths.map(\.path), url: url?.text, type: type?.text, title: title?.text, userInfo: userInfo,
            webPageURL: webPageURL?.text, serve: serve, throughShell: shell, isExclusive: exclusive)
    }
}
