// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Baton
import BatonAccount
import BatonMessages
import BatonTransport

/// `baton devices forget`
struct DevicesForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Remove a device that is gone from the list of this device.",
        discussion: """
            This is for a device that you gave away after `baton account leave`, or erased. A device that still has \
            its keys is listed again when it comes back. Lock a lost one out with `baton devices revoke`.

            EXAMPLES:
              baton devices forget phone
            """)

    @Argument(
        help: ArgumentHelp("The device's name, a former name, or the beginning of its id.", valueName: "name"),
        completion: .devices)
    var device: CommandArgument

    func run() async throws {
        let home = try CommandEnvironment.home()
        let store = CommandEnvironment.accountStore(home)
        do {
            let own = try store.load()
            let node = try await NodeAccess.node(of: home, storing: store, otherwise: "nothing was forgotten")
            let known =
                try await node?.devices().devices.map(KnownDevice.init)
                ?? store.loadKnownDevices().entries.map(KnownDevice.init)
            let chosen = try DeviceChoice(
                ownID: own.identity.id.description, ownName: own.deviceName, known: known, revoked: []
            ).find(device.text)
            guard known.contains(where: { $0.id == chosen.id }) else {
                throw CommandError.usage(DeviceChoice.noSuchDevice(device.text))
            }
            if let node {
                try await node.editDevices(.forget(chosen.id))
                await node.close()
            } else {
                try store.forget(chosen.id)
            }
            Output.say("\(chosen.shown) is forgotten here.")
        } catch let error as AccountError {
            throw CommandError(error)
        } catch let error as HandoffError {
            throw CommandError(error)
        }
    }
}
