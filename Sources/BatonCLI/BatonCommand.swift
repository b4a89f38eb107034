// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import BatonEventLoop
import BatonNode
import CVersion
import Glibc

@main
struct BatonCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "baton",
        abstract: "Carry what you are doing from one of your machines to another.",
        discussion: """
            On your first machine:       baton
            To add another one, there:   baton account invite
            And on the new one:          baton

            Hand something over:         baton offer ~/report.pdf
            Take it on another machine:  baton accept

            If they do not find each other:  baton doctor

            BATON_HOME=DIR keeps configuration, state and socket in DIR.

            EXIT STATUS:
            \(ExitStatus.table)
            """,
        version: String(cString: baton_version()),
        subcommands: [
            AccountCommand.self, NodeCommand.self, StatusCommand.self, DevicesCommand.self, ActivitiesCommand.self,
            OfferCommand.self, AcceptCommand.self, WithdrawCommand.self, TransfersCommand.self, PolicyCommand.self,
            RootsCommand.self, DoctorCommand.self,
            ApplicationsCommand.self, ApplicationCommand.self, HandoffCommand.self,
        ])

    func run() async throws {
        try await FirstRun.run()
    }

    // On the main thread, because nothing may run elsewhere before the pool is there.
    @MainActor
    static func main() async {
        occupyStandardDescriptors()
        GlobalPool.install()
        do {
            let arguments = CommandArgument.commandLine()
            // A shell that completes a line does not run it.
            if arguments.first != "---completion" { try AccountKeyArgument.refuse(in: arguments) }
            var command = try await asyncParseAsRoot(arguments)
            // libdispatch ends a program that cannot have them without a word.
            if !(command is DoctorCommand), !WatchLimit.hasRoom(for: MachineFacts.watches) {
                throw CommandError.failed(
                    Cause.fewWatches.sentence("") + ": `baton doctor` names the command that allows more")
            }
            // `offer` reads no secret, and the programs that it runs may leave core dumps.
            if !(command is OfferCommand) { ProcessSecrecy.protect() }
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            guard let failure = CommandError(translating: error) else { Glibc.exit(report(error).rawValue) }
            if failure.status != .interrupted { Output.complain(failure.message) }
            Glibc.exit(failure.status.rawValue)
        }
    }

    /// Prints the result of argument parsing: help on standard output, wrong usage on standard error.
    private static func report(_ error: any Error) -> ExitStatus {
        let text = fullMessage(for: error)
        if exitCode(for: error).isSuccess {
            try? Output.line(text)
            return .success
        }
        // An error of another kind gets no usage line.
        guard exitCode(for: error) == .validationFailure else {
            Output.complain("\(error)")
            return .failed
        }
        let prefix = "Error: "
        Output.complain(text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text)
        return .usage
    }
}

extension BatonCommand {
    /// Opens /dev/null for each standard descriptor that is closed. Otherwise a socket or file of this process gets its
    /// number, and printing writes there. Call this first: the event loop opens descriptors of its own.
    private static func occupyStandardDescriptors() {
        for number in Int32(0)...2 where fcntl(number, F_GETFD) < 0 {
            _ = open("/dev/null", O_RDWR)
        }
    }
}
