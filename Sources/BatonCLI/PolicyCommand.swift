// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonNode
import Glibc
import SystemPackage

struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Show and check the rules that accept or refuse activities for you.",
        discussion: """
            The accept policy is a file that you write: accept-policy in Baton's configuration folder \
            (~/.config/baton). Each line is one rule. The first rule that matches an activity decides. An activity \
            that no rule matches waits for you. Without the file nothing is accepted for you.

            The node reads the file again when it changes. While a line is wrong, no rule accepts anything, and the \
            readable lines that refuse stay in force; `baton status` says so. While the file cannot be read, or others \
            can write to it, the rules that refused before stay in force for as long as the node runs.

            A rule is accept, ask or refuse, and its conditions. A condition that is missing or * matches everything:

              device=NAME    the other device by its name, or by its whole id
              type=TYPE      the activity's type, with * as a wildcard;
                             public.data is a file
              max=SIZE       the largest size, as announced and as received:
                             500, 100KB, 20MB, 1.5GB, 4GiB;
                             for accept, each entry of a folder adds 4 KiB
              network=WHERE  an interface (wlan0) or addresses (192.168.1.0/24):
                             the device announces itself there, and is reached
                             there when something is accepted
              to=FOLDER      the folder for accepted documents;
                             begins with / or ~/
              on-conflict=rename
                             gives a document a number if its name is taken;
                             on-conflict=fail leaves it to you, which is the default

            A device can have any name. Only its id identifies it: see `baton devices --json`.

            accept fetches each matching document once, when it becomes the latest activity of its device. Documents \
            that were offered before the rule are not fetched, and an existing file is never replaced. Other matching \
            activities wait for you. refuse keeps an activity out of every list; `baton accept` says which rule \
            refuses it. A comment begins with #. A value with spaces stands in quotes.

            EXAMPLE OF A FILE:
              # scans come by themselves, at home
              accept device=scanner max=100MB network=192.168.1.0/24 to=~/Scans
              refuse device="old tablet"

            EXAMPLES:
              baton policy                  # show the rules in force
              baton policy check            # check the file
              baton policy check draft      # check another file
            """,
        subcommands: [PolicyShowCommand.self, PolicyCheckCommand.self],
        defaultSubcommand: PolicyShowCommand.self)
}

struct PolicyShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the rules in force. (default)")

    @OptionGroup var output: JSONOption

    func run() throws {
        let path = AcceptPolicyFile.path(in: try CommandEnvironment.home())
        let policy = try PolicyReading.read(path)
        if output.json {
            for rule in policy?.rules ?? [] { try Output.line(PolicyReading.json(rule)) }
            return
        }
        guard let policy, !policy.rules.isEmpty else {
            return Output.say(
                "Nothing is accepted for you: \(path.shown) \(policy == nil ? "does not exist" : "has no rule").")
        }
        for rule in policy.rules { try Output.line("line \(rule.line)  \(SafeText.escaped("\(rule)"))") }
        Output.say("An activity that no rule matches waits for you. The rules are in \(path.shown).")
    }
}

struct PolicyCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check the policy, or another file.")

    @Argument(help: "The file to check. (default: the policy in force)", completion: .file())
    var file: CommandArgument?

    func run() throws {
        let home = try CommandEnvironment.home()
        let path = file.map { CommandEnvironment.absolute($0.path) } ?? AcceptPolicyFile.path(in: home)
        guard let policy = try PolicyReading.read(path, isInForce: file == nil) else {
            guard file == nil else { throw CommandError.usage("\(path.shown) does not exist") }
            return Output.say("Nothing is accepted for you: \(path.shown) does not exist.")
        }
        for rule in policy.rules {
            guard let folder = rule.destination else { continue }
            if folder.withPlatformString({ access($0, W_OK | X_OK) }) != 0 {
                Output.complain("line \(rule.line): the folder \(folder.shown) cannot be written to: make it first")
            }
        }
        Output.say("\(path.shown) has no mistakes: \(HumanUnits.count(policy.rules.count, "rule")).")
    }
}

enum PolicyReading {
    static func read(_ path: FilePath, isInForce: Bool = true) throws -> AcceptPolicy? {
        try CommandError.naming(
            path, consequence: isInForce ? "; \(AcceptPolicyFile.meaningOfMistake)" : "",
            try AcceptPolicyFile.read(path))
    }

    static func json(_ rule: AcceptPolicy.Rule) -> String {
        [.count("line", rule.line), .text("action", rule.action.rawValue), .text("rule", "\(rule)")].line
    }
}
