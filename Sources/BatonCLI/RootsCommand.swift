// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonNode
import FoundationEssentials
import SystemPackage

/// `baton roots`
struct RootsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roots",
        abstract: "Name the folders that this device shares with your others.",
        discussion: """
            A folder that several of your devices have, on a network drive or because a program keeps it the same \
            everywhere, can be given a name on each of them. A file in it that an activity speaks of is then the same \
            file in the folder of that name on the other device, wherever that is, and is not sent. A file anywhere \
            else is sent as the activity's document.

            The folders are lines NAME=FOLDER of the file shared-roots in Baton's configuration folder \
            (~/.config/baton); a folder begins with / or ~/, and behind # stands what is meant for people. The node \
            reads the file again when it has changed; while something in it is wrong, no folder is shared.

            When you accept a document from such a folder, what you have there under its name need not be sent: the \
            other device then hears digests of it, of files from 1 MiB on, and not of what a rule of yours accepts.

            Links inside a shared folder are followed as long as they stay inside.

            EXAMPLES:
              baton roots                            # which are there?
              baton roots add Documents ~/Documents
              baton roots remove Documents
            """,
        subcommands: [RootsListCommand.self, RootsAddCommand.self, RootsRemoveCommand.self],
        defaultSubcommand: RootsListCommand.self)
}

/// `baton roots list`
struct RootsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List them. (default)")

    @OptionGroup var output: JSONOption

    func run() throws {
        let path = SharedRootsFile.path(in: try CommandEnvironment.home())
        let roots = try RootsEditing.attempt(path) { () throws(ConfigurationError) in
            try SharedRootsFile.read(path, userHome: ConfigurationFile.userHome)
        }
        if output.json {
            for root in roots.roots { try Output.line(RootsEditing.json(root)) }
            return
        }
        for root in roots.roots { try Output.line("\(root.name)  \(SafeText.escaped(root.folder.string))") }
        for root in roots.roots where !RootsEditing.isFolder(root.folder) {
            Output.complain("line \(root.line): \(SafeText.escaped(root.folder.string)) is no folder: make it first")
        }
        if roots.roots.isEmpty { Output.say("No folder is shared: add one with `baton roots add NAME FOLDER`.") }
    }
}

/// `baton roots add`
struct RootsAddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "add", abstract: "Share a folder under a name.")

    @Argument(help: "What your devices call it: letters, digits, dots, hyphens, underscores.")
    var name: String

    @Argument(help: "Where this device has it.", completion: .directory)
    var folder: String

    func run() throws {
        guard SharedRoots.isName(name) else {
            throw CommandError.usage(
                "\"\(SafeText.escaped(name))\" is no name: use up to \(SharedRoots.nameBound) letters, digits, dots, "
                    + "hyphens and underscores")
        }
        guard !folder.isEmpty else { throw CommandError.usage("the folder's path is empty") }
        let folder = CommandEnvironment.absolute(folder)
        guard RootsEditing.isFolder(folder) else {
            throw CommandError.usage("\(SafeText.escaped(folder.string)) is no folder: make it first")
        }
        let path = SharedRootsFile.path(in: try CommandEnvironment.home())
        try RootsEditing.attempt(path) { () throws(ConfigurationError) in
            try SharedRootsFile.add(name, folder, to: path, userHome: ConfigurationFile.userHome)
        }
        Output.say(
            "\(name) is \(SafeText.escaped(folder.string)) on this device. Name the folder so on your others as well.")
    }
}

/// `baton roots remove`
struct RootsRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Share a folder no longer; what is in it stays.")

    @Argument(help: "As `baton roots` shows it.")
    var name: String

    func run() throws {
        let path = SharedRootsFile.path(in: try CommandEnvironment.home())
        let isRemoved = try RootsEditing.attempt(path) { () throws(ConfigurationError) in
            try SharedRootsFile.remove(name, from: path, userHome: ConfigurationFile.userHome)
        }
        guard isRemoved else {
            throw CommandError.usage("no shared folder is called \"\(SafeText.escaped(name))\": see `baton roots`")
        }
        Output.say("\(name) is shared no longer.")
    }
}

/// How the commands read, change and print the shared folders.
enum RootsEditing {
    static func attempt<Result>(
        _ path: FilePath, _ body: () throws(ConfigurationError) -> Result
    ) throws(CommandError) -> Result {
        do {
            return try body()
        } catch {
            throw CommandError(
                .usage, code: "roots", "\(SafeText.escaped(path.string)): \(SafeText.escaped("\(error)"))")
        }
    }

    static func isFolder(_ path: FilePath) -> Bool {
        var isFolder = false
        return FileManager.default.fileExists(atPath: path.string, isDirectory: &isFolder) && isFolder
    }

    static func json(_ root: SharedRoot) -> String {
        JSONValue.object([
            JSONValue.Member("name", .string(root.name)),
            JSONValue.Member("folder", .string(root.folder.string)),
        ]).text
    }
}
