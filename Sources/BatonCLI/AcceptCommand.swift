// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonMessages
import FoundationEssentials
import Glibc
import SystemPackage

/// `baton accept`
struct AcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Take an activity of another device over.",
        discussion: """
            Takes the only one there is, or asks which, and gives it to the application here that continues such \
            activities, which is started if it does not run: the one in front, or the one used last, or the one that \
            you name; see `baton applications`.

            Without such an application a web page opens in your browser, and its URL is printed; a document goes into \
            the current directory, or into --to, never over an existing file, and its path is printed; of anything \
            else the fields are printed.

            A document that stopped coming goes on by itself when the device is back within 10 minutes; later, or after \
            ^C, `baton accept` goes on with what has come, which is kept for a week.

            ^C cancels. When the terminal goes away the node goes on, and the document arrives all the same.

            EXAMPLES:
              baton accept
              baton accept 3f2a --to ~/Downloads
              baton accept --latest --from laptop --wait 60
              baton accept --stream < request > answer
              xdg-open "$(baton accept --latest --print)"
            """)

    @Argument(help: "The activity's id, or as much of its beginning as tells it apart.")
    var id: String?

    @Flag(name: .long, help: "Take the newest where there are several.")
    var latest = false

    @Option(
        name: .long,
        help: ArgumentHelp("Only from this device: its name, or the beginning of its id.", valueName: "device"))
    var from: String?

    @Option(name: .long, help: ArgumentHelp("Wait so long for one that matches.", valueName: "seconds"))
    var wait: Double?

    @Option(
        name: .long, help: ArgumentHelp("The folder for a document. (default: the current directory)", valueName: "dir")
    )
    var to: PathArgument?

    @Flag(name: .long, help: "Connect standard input and output to a stream of the offering application.")
    var stream = false

    @Flag(name: .long, help: "Print the payload only: no document is fetched, no application told, no browser opened.")
    var print = false

    @Option(
        name: .long,
        help: ArgumentHelp("The application that continues it, where there are several.", valueName: "id"))
    var application: String?

    @Flag(name: .long, help: "Open the document with the desktop's default application.")
    var open = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "An older copy of the document, here, a file or a folder: what it has is not sent. Can be given several times.",
            valueName: "path"))
    var against: [PathArgument] = []

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Print these bytes of the document, and take nothing over.", valueName: "start-end"))
    var range: String?

    @Option(
        name: .long,
        help: ArgumentHelp("The file that --range is of, where the document is a folder.", valueName: "path"))
    var file: PathArgument?

    @OptionGroup var output: JSONOption

    func validate() throws {
        if let id, ActivityPrefix(id) == nil { throw ValidationError(ActivityPrefix.problem(id)) }
        if let wait, !(wait >= 0 && wait <= 31_536_000) {
            throw ValidationError("--wait takes seconds, 0 to 31536000 (a year)")
        }
        if stream, print { throw ValidationError("--stream and --print exclude each other") }
        if to != nil, stream || print {
            throw ValidationError("--to is for documents; \(stream ? "--stream" : "--print") fetches none")
        }
        if application != nil, stream || print {
            throw ValidationError("--application and \(stream ? "--stream" : "--print") exclude each other")
        }
        if open, stream || print {
            throw ValidationError("--open is for documents; \(stream ? "--stream" : "--print") fetches none")
        }
        if let range {
            guard ByteRange(range) != nil else { throw ValidationError(ByteRange.problem) }
            if stream || print || open || to != nil || application != nil || output.json || !against.isEmpty {
                throw ValidationError("--range prints bytes, and goes with the choice of an activity alone")
            }
        } else if file != nil {
            throw ValidationError("--file names the file in a folder of which --range prints bytes: give both")
        }
        if !against.isEmpty, stream || print {
            throw ValidationError("--against is for documents; \(stream ? "--stream" : "--print") fetches none")
        }
        if let from, from.isEmpty {
            throw ValidationError("--from takes the name of a device, as `baton devices` shows")
        }
    }

    func run() async throws {
        // A reader that goes away shows as an error of the write, so that the handoff is ended properly.
        signal(SIGPIPE, SIG_IGN)
        let choice = ActivityChoice(prefix: id.flatMap(ActivityPrefix.init), isLatest: latest, device: from)
        let reporter = AcceptReporter(isJSON: output.json, isStream: stream)
        let interruption = AcceptInterruption()
        let interrupts = await interruption.watch()
        defer { withExtendedLifetime(interrupts) {} }
        do {
            try await NodeAccess.withNode { client in
                let finder = ActivityFinder(client: client, choice: choice)
                var replacements = 0
                while true {
                    let found = try await finder.find(waiting: wait.map { .seconds($0) })
                    do {
                        return try await take(found, client, reporter, interruption)
                    } catch let error as HandoffError where error.code == .noSuchActivity && !found.isNamed {
                        // Replaced by something that goes to another application: the user means what is there now.
                        replacements += 1
                        guard replacements < Self.replacementBound else { throw error }
                        await reporter.replaced(because: error)
                    }
                }
            }
        } catch let error as CommandError {
            try? await reporter.failed(error)
            throw error
        }
    }

    /// How often what is there may be replaced before it can be taken.
    private static let replacementBound = 5

    private func take(
        _ found: ActivityFinder.Found, _ client: NodeClient, _ reporter: AcceptReporter,
        _ interruption: AcceptInterruption
    ) async throws {
        let activity = found.activity
        var request = WireAcceptRequest()
        request.activityID = .init(activity.id)
        request.deviceID = activity.deviceID
        request.orNewest = !found.isNamed
        request.shownKind = activity.kind
        request.shownTitle = activity.title
        let range = range.flatMap(ByteRange.init)
        if range != nil, activity.kind != .document {
            throw CommandError.failed("\(activity.shownTitle) is no document: --range prints bytes of one")
        }
        request.streams = stream || range != nil
        request.look = range != nil
        request.against = against.map { .init(CommandEnvironment.absolute($0.path).bytes) }
        if activity.kind == .document, !stream, !print, range == nil {
            let folder = CommandEnvironment.absolute(to?.path ?? ".")
            try DestinationCheck.check(folder)
            request.destination = .init(folder.bytes)
        }
        request.toApplication = !stream && !print && range == nil
        request.application = application ?? ""
        defer { interruption.end() }
        await reporter.accepts()
        var handoff = try await interruption.accept(request, by: client)
        if !handoff.choices.isEmpty {
            interruption.end()
            request.application = try await ApplicationChooser.ask(handoff.choices).identifier
            await reporter.accepts()
            handoff = try await interruption.accept(request, by: client)
        }
        let outcome = try await AcceptRun(
            client: client, handoff: handoff, activity: activity, reporter: reporter, interruption: interruption,
            isStream: stream, isFetching: !request.destination.isEmpty, range: range,
            file: file?.path.bytes ?? []
        ).run()
        interruption.end()
        if request.toApplication { await AcceptedOpening(isJSON: output.json).open(outcome, documents: open) }
    }
}
