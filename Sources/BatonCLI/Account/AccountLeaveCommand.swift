import ArgumentParser
import Baton
import BatonAccount
import SystemPackage

/// `baton account leave`
struct AccountLeaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave",
        abstract: "Take this device out of its account.",
        discussion: """
            Removes this device's key and everything of the account from it. The other devices stay in the account; \
            this one needs the account key to join again.

            EXAMPLES:
              baton account leave
              baton account leave --yes     # without a question, for scripts
            """)

    @Flag(name: .shortAndLong, help: "Do not ask.")
    var yes = false

    func run() async throws {
        let home = try CommandEnvironment.home()
        if let client = try? await NodeClient.connect(to: home) {
            await client.close()
            throw CommandError.failed("a node is running here with this account: stop `baton node` first")
        }
        try await Confirmation.require(
            isGiven: yes, consequence: "leaving cannot be undone without the account key",
            question: "Joining again will need the account key. Leave the account?")
        do {
            try CommandEnvironment.accountStore(home).leave()
        } catch {
            throw CommandError(error)
        }
        Output.say("This device is in no account any more.")
    }
}
