// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import FoundationEssentials
import Glibc
import SystemPackage

struct AcceptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept",
        abstract: "Accept an activity of another device.",
        discussion: """
            If several activities are offered, it asks which one. The activity goes to an application here that \
            continues its type: the one in front, the one used last, or the one that you name. The application is \
            started if it does not run; see `baton applications`.

            Without such an application, a web page opens in your browser, and its URL is printed. A document goes \
            into the current directory, or into --to, and its path is printed; an existing file is never replaced: see \
            --on-conflict. For any other activity the fields are printed.

            If the other device goes away, the transfer goes on by itself when it is back within 10 minutes. Later, or \
            after ^C, another `baton accept` goes on from the part that is here. The part is kept for a week.

            --stream fails if the program on the other side fails: what was printed may then be cut short.

            ^C cancels. If the terminal is closed, the node continues, and the document still arrives.

            EXAMPLES:
              baton accept
              baton accept 3f2a --to ~/Downloads
              baton accept "Holiday plans"
              baton accept --latest --from laptop --wait 60
              baton accept --stream < request > answer
              xdg-open "$(baton accept --latest --print)"
            """)

    @Argument(
        help: ArgumentHelp("The activity's id or title, or enough of its beginning.", valueName: "activity"),
        completion: .activities)
    var activity: CommandArgument?

    @Flag(name: .long, help: "If there are several, accept the newest.")
    var latest = false

    @Option(
        name: .long,
        help: ArgumentHelp("Only from this device: its name, or the beginning of its id.", valueName: "device"),
        completion: .devices)
    var from: CommandArgument?

    @Option(name: .long, help: ArgumentHelp("Wait this long for an activity that matches.", valueName: "seconds"))
    var wait: Double?

    @Option(
        name: .long,
        help: ArgumentHelp("The folder for a document. (default: the current directory)", valueName: "dir"),
        completion: .directory)
    var to: CommandArgument?

    @Option(
        name: .long,
        help: ArgumentHelp("What the document is called here. (default: its own name)", valueName: "name"))
    var name: CommandArgument?

    enum Conflict: String, ExpressibleByArgument, CaseIterable {
        case rename, fail
    }

    @Option(
        name: .long,
        help: ArgumentHelp(
            "If the name is taken: rename appends a number, as in \"film (2).bin\"; fail takes nothing.",
            valueName: "rename|fail"))
    var onConflict = Conflict.fail

    @Flag(name: .long, help: "Connect standard input and output to a stream of the offering application.")
    var stream = false

    @Flag(name: .long, help: "Only print the payload: fetch no document, use no application and no browser.")
    var print = false

    @Option(
        name: .long,
        help: ArgumentHelp("The application that continues it, if there are several.", valueName: "id"),
        completion: .applications)
    var application: CommandArgument?

    @Flag(name: .long, help: "Open the document with the desktop's default application.")
    var open = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "An older copy of the document on this device. Parts that it has are not sent. Repeatable.",
            valueName: "path"),
        completion: .file())
    var against: [CommandArgument] = []

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Print these bytes of the document, and accept nothing.", valueName: "start-end"))
    var range: CommandArgument?

    @Option(
        name: .long,
        help: ArgumentHelp("The file for --range, if the document is a folder.", valueName: "path"))
    var file: CommandArgument?

    @OptionGroup var output: JSONOption

    func validate() throws {
        if let wait, !(wait >= 0 && wait <= 31_536_000) {
            throw ValidationError("--wait takes seconds, 0 to 31536000 (a year)")
        }
        if let name, (try? DocumentLabel(name.bytes)) == nil {
            throw ValidationError("--name takes the name of a file, without a slash; --to names the folder")
        }
        if let range, ByteRange(range.text) == nil { throw ValidationError(ByteRange.problem) }
        if file != nil, range == nil {
            throw ValidationError("--file names the file in a folder of which --range prints bytes: give both")
        }
        let modes = [("--stream", stream), ("--print", print), ("--range", range != nil)].filter(\.1).map(\.0)
        let others = [
            ("--application", application != nil), ("--to", to != nil), ("--name", name != nil),
            ("--on-conflict", onConflict == .rename), ("--open", open), ("--against", !against.isEmpty),
            ("--json", output.json && range != nil),
        ].filter(\.1).map(\.0)
        let given = modes + (modes.isEmpty ? [] : others)
        if given.count > 1 { throw ValidationError("\(given[0]) and \(given[1]) exclude each other") }
    }

    func run() async throws {
        // If the reader of the output goes away, the write fails, and the handoff is ended properly.
        signal(SIGPIPE, SIG_IGN)
        let choice = ActivityChoice(
            name: activity.map { ActivityName(text: $0.text) }, isLatest: latest, device: from?.text)
        let reporter = AcceptReporter(EventOutput(isJSON: output.json, isOutputTaken: stream))
        let interruption = AcceptInterruption()
        await interruption.watch()
        do {
            try await NodeAccess.withNode { client in
                let responder = Task {
                    // A command that is over at once has nothing to tell of it.
                    try await Alarm.sleep(for: Self.patience)
                    try await ResponderWatch.run(client, reporter.output)
                }
                defer { responder.cancel() }
                let finder = ActivityFinder(client: client, choice: choice)
                var tries = 1
                while true {
                    let found = try await finder.find(waiting: wait.map { .seconds($0) })
                    do {
                        return try await take(found, client, reporter, interruption)
                    } catch let error as HandoffError
                        where error.code == .noSuchActivity && !found.isNamed && tries < Self.tryBound
                    {
                        // Another activity has replaced it. The user means the present one.
                        await reporter.replaced(because: error)
                        tries += 1
                    }
                }
            }
        } catch {
            if let failure = CommandError(translating: error) { try? await reporter.failed(failure) }
            throw error
        }
    }

    /// The time after which the user hears that devices do not see each other: 250 ms.
    private static let patience = Duration.milliseconds(250)
    /// How often an activity is looked for that is replaced before it is accepted: 5 times.
    private static let tryBound = 5

    private func take(
        _ found: ActivityFinder.Found, _ client: NodeClient, _ reporter: AcceptReporter,
        _ interruption: AcceptInterruption
    ) async throws {
        let activity = found.activity
        var request = WireAcceptRequest()
        request.activityID = .init(activity.id)
        request.deviceID = activity.deviceID
        request.shownKind = activity.kind
        request.shownTitle = activity.title
        let range = range.flatMap { ByteRange($0.text) }
        if range != nil, activity.kind != .document {
            throw CommandError.failed("\(activity.shownTitle) is no document: --range prints bytes of one")
        }
        request.streams = stream || range != nil
        request.look = range != nil
        request.against = against.map { .init(CommandEnvironment.absolute($0.path).bytes) }
        if activity.kind == .document, !stream, !print, range == nil {
            let folder = CommandEnvironment.absolute(to?.path ?? ".")
            request.destination = .init(folder.bytes)
            request.name = .init(name?.bytes ?? [])
            request.renames = onConflict == .rename
        }
        request.toApplication = !stream && !print && range == nil
        request.application = application?.text ?? ""
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
