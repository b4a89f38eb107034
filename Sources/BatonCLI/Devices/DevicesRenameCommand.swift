// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonTransport

/// `baton devices rename`
struct DevicesRenameCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename",
        abstract: "Give this device another name.",
        discussion: """
            The other devices show the new name as soon as they hear from this one, and the old one under BEFORE. To \
            rename another device, run the command there.

            EXAMPLES:
              baton devices rename "old laptop"
            """)

    @Argument(help: ArgumentHelp("What the other devices call this one. At most 63 bytes.", valueName: "name"))
    var name: CommandArgument

    func run() async throws {
        let home = try CommandEnvironment.home()
        let store = CommandEnvironment.accountStore(home)
        do {
            let name = try name.deviceName
            if let node = try await NodeAccess.node(of: home, storing: store, otherwise: "nothing was renamed") {
                try await node.editDevices(.name(name))
                await node.close()
            } else {
                try store.setDeviceName(name)
            }
            Output.say("This device is \(SafeText.escaped(name)) now.")
        } catch let error as AccountError {
            throw CommandError(error)
        } catch let error as HandoffError {
            throw CommandError(error)
        }
    }
}
