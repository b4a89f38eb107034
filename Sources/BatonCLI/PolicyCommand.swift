// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonNode
import Glibc
import SystemPackage

/// `baton policy`
struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Show and check what is taken over without asking, and what is refused.",
        discussion: """
            The accept policy is the file accept-policy in Baton's configuration folder (~/.config/baton), which you \
            write. One rule a line; the first that matches an activity decides, and what none matches is asked about. \
            Without the file nothing is ever taken over without you. The node reads it again when it has changed; while \
            something in it is wrong, nothing is accepted, what a readable line refuses stays refused, and `baton \
            status` says so. While it cannot be read, or others could write to it, what it refused before stays \
            refused for as long as the node runs.

            A rule is accept, ask or refuse and its conditions; what is left out, or is *, matches everything:

              device=NAME    the other device, or its whole id; see below
              type=TYPE      with * for anything; public.data is a file
              max=SIZE       at most so large, as announced and as it comes: 500, 100KB, 20MB, 1.5GB, 4GiB;
                             for accept, what is in a folder counts 4 KiB each besides
              network=WHERE  an interface (wlan0) or addresses (192.168.1.0/24): where the device is seen, or
                             says that it is, and for what is taken over where it is reached as well
              to=FOLDER      where accepted documents go; begins with / or ~/

            A device can call itself what it likes, and only its id is sure: `baton devices --json` shows it.

            accept takes over documents, never over an existing file, that are offered from then on, each once, when they become a device's latest \
            activity; anything else that it matches is asked about. refuse keeps an activity out of every list, and \
            `baton accept` says which rule refuses it. Behind # stands what is meant for people, and values with \
            spaces stand in quotes.

            EXAMPLE OF A FILE:
              # scans come by themselves, at home
              accept device=scanner max=100MB network=192.168.1.0/24 to=~/Scans
              refuse device="old tablet"

            EXAMPLES:
              baton policy                  # the rules in force
              baton policy check            # is the file right?
              baton policy check draft      # would this one be?
            """,
        subcommands: [PolicyShowCommand.self, PolicyCheckCommand.self],
        defaultSubcommand: PolicyShowCommand.self)
}

/// `baton policy show`
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
                "Everything is asked about: \(path.shown) \(policy == nil ? "does not exist" : "has no rule").")
        }
        for rule in policy.rules { try Output.line("line \(rule.line)  \(SafeText.escaped("\(rule)"))") }
        Output.say("What no rule matches is asked about. The rules are in \(path.shown).")
    }
}

/// `baton policy check`
struct PolicyCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Check the policy, or a draft of one.")

    @Argument(help: "Another file than the one in force.")
    var file: String?

    func run() throws {
        let home = try CommandEnvironment.home()
        let path = file.map(CommandEnvironment.absolute) ?? AcceptPolicyFile.path(in: home)
        guard let policy = try PolicyReading.read(path, isInForce: file == nil) else {
            guard file == nil else { throw CommandError.usage("\(path.shown) does not exist") }
            return Output.say("Everything is asked about: \(path.shown) does not exist.")
        }
        for rule in policy.rules {
            guard let folder = rule.destination else { continue }
            if access(folder.string, W_OK | X_OK) != 0 {
                Output.complain("line \(rule.line): the folder \(folder.shown) cannot be written to: make it first")
            }
        }
        Output.say("\(path.shown) is right: \(policy.rules.count == 1 ? "1 rule" : "\(policy.rules.count) rules").")
    }
}

/// How the commands read and print a policy.
enum PolicyReading {
    static func read(_ path: FilePath, isInForce: Bool = true) throws -> AcceptPolicy? {
        do {
            return try AcceptPolicyFile.read(path, userHome: ConfigurationFile.userHome)
        } catch {
            let consequence = isInForce ? "; \(AcceptPolicyFile.meaningOfMistake)" : ""
            throw CommandError(
                .usage, code: "policy", "\(path.shown): \(SafeText.escaped("\(error)"))\(consequence)")
        }
    }

    static func json(_ rule: AcceptPolicy.Rule) -> String {
        JSONValue.object([
            JSONValue.Member("line", .integer(Int64(rule.line))),
            JSONValue.Member("action", .string(rule.action.rawValue)),
            JSONValue.Member("rule", .string("\(rule)")),
        ]).text
    }
}

extension FilePath {
    fileprivate var shown: String { SafeText.escaped(string) }
}
