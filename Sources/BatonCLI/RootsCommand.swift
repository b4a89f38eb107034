// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonDocuments
import BatonNode
import FoundationEssentials
import SystemPackage

struct RootsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roots",
        abstract: "Name the folders that this device shares with your others.",
        discussion: """
            Several of your devices may have the same folder: on a network drive, or because a program synchronizes \
            it. Give it the same name on each of them. A file in it that an activity refers to is then not sent: the \
            other device uses its own copy in the folder of that name. A file anywhere else is sent as the activity's \
            document.

            The folders are lines NAME=FOLDER in the file shared-roots of Baton's configuration folder \
            (~/.config/baton). A folder begins with / or ~/. A comment begins with #. The node reads the file again \
            when it changes. While a line is wrong, no folder is shared.

            A document that you accept into a folder that you name is sent. If you have an older copy of it, name \
            that with --against.

            Symbolic links in a shared folder are followed if they stay inside it.

            EXAMPLES:
              baton roots                            # list the folders
              baton roots add Documents ~/Documents
              baton roots remove Documents
            """,
        subcommands: [RootsListCommand.self, RootsAddCommand.self, RootsRemoveCommand.self],
        defaultSubcommand: RootsListCommand.self)
}

struct RootsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List them. (default)")

    @OptionGroup var output: JSONOption

    func run() throws {
        let path = SharedRootsFile.path(in: try CommandEnvironment.home())
        let roots = try CommandError.naming(
            path, try SharedRootsFile.read(path))
        if output.json {
            for root in roots.roots { try Output.line(RootsEditing.json(root)) }
            return
        }
        for root in roots.roots { try Output.line("\(root.name)  \(root.folder.shown)") }
        for root in roots.roots where !RootsEditing.isFolder(root.folder) {
            Output.complain("line \(root.line): \(root.folder.shown) is no folder: make it first")
        }
        if roots.roots.isEmpty { Output.say("No folder is shared: add one with `baton roots add NAME FOLDER`.") }
    }
}

struct RootsAddCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "add", abstract: "Share a folder under a name.")

    @Argument(help: "The name on all devices: letters, digits, dots, hyphens, underscores.")
    var name: CommandArgument

    @Argument(help: "The folder on this device.", completion: .directory)
    var folder: CommandArgument

    func run() throws {
        let name = name.text
        guard SharedRoots.isName(name) else {
            throw CommandError.usage(
                "\"\(SafeText.escaped(name))\" is no name: use up to \(SharedRoots.nameBound) letters, digits, dots, "
                    + "hyphens and underscores")
        }
        let folder = CommandEnvironment.absolute(folder.path)
        guard RootsEditing.isFolder(folder) else {
            throw CommandError.usage("\(folder.shown) is no folder: make it first")
        }
        let path = SharedRootsFile.path(in: try CommandEnvironment.home())
        try CommandError.naming(
            path, try SharedRootsFile.add(name, folder, to: path))
        Output.say(
            "\(name) is \(folder.shown) on this device. Give the folder the same name on your other devices.")
    }
}

struct RootsRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Stop sharing a folder. Its files stay.")

    @Argument(help: "The name, as `baton roots` shows it.", completion: .roots)
    var name: CommandArgument

    func run() throws {
        let path = SharedRootsFile.path(in: try CommandEnvironment.home())
        let isRemoved = try CommandError.naming(
            path, try SharedRootsFile.remove(name.text, from: path))
        guard isRemoved else {
            throw CommandError.usage("no shared folder is called \"\(SafeText.escaped(name.text))\": see `baton roots`")
        }
        Output.say("\(SafeText.escaped(name.text)) is no longer shared.")
    }
}

enum RootsEditing {
    static func isFolder(_ path: FilePath) -> Bool {
        (try? path.stat().type) == .directory
    }

    static func json(_ root: SharedRoot) -> String {
        ([.text("name", root.name)] + JSONMember.path("folder", root.folder.bytes)).line
    }
}
