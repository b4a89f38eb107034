// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BatonAccount
import BatonEventLoop
import BatonNode
import BatonProtocol
import Glibc
import SystemPackage

struct AccountInviteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite",
        abstract: "Let a new device join this device's account, without typing its key there.",
        discussion: """
            Run `baton account join` on the new device. It shows six digits: type them here. They show that the two \
            devices talk to each other and not to somebody in between. Somebody in between who guesses has three tries \
            in a million, and one more for each time that you start `join` again.

            It asks for the passphrase of `baton account create`, or for the account key if this device does not keep \
            it. An invitation adds one device, and ends after ten minutes. If this device changes its network \
            meanwhile, invite again.

            EXAMPLES:
              baton account invite
              baton account invite --key-file key    # digits are a line of standard input
            """)

    @Option(
        name: .long, help: ArgumentHelp("Read the account key from a file of mode 0600.", valueName: "file"),
        completion: .file())
    var keyFile: CommandArgument?

    func run() async throws {
        guard keyFile != nil || Terminal.isTerminal(.standardInput) else {
            throw CommandError.usage("nobody can be asked for the account key here: give --key-file")
        }
        let store = CommandEnvironment.accountStore(try CommandEnvironment.home())
        do {
            let server = try await Self.server(keyFile?.path, store)
            let announcement = try InvitationDiscovery(announcing: server)
            var dialogue = InvitationDialogue(server, announcement, in: try store.load().id)
            do {
                try await dialogue.run()
            } catch {
                await announcement.stop()
                throw error
            }
            await announcement.stop()
        } catch let error as SocketError {
            throw CommandError.failed("the invitation cannot be opened: \(error)")
        }
    }

    /// The secrets are in no variable of ``run()``, so that they are wiped after the hand-over.
    private static func server(
        _ keyFile: FilePath?, _ store: AccountStore
    ) async throws -> InvitationServer {
        let (secrets, account) = try await AccountKeyInput.read(from: keyFile, of: store)
        return try InvitationServer(for: account, with: secrets)
    }
}

private struct InvitationDialogue {
    private enum Input: Sendable {
        case event(Invitation.Event)
        case announcement(InvitationDiscovery.Event)
        /// Nil at the end of standard input.
        case line(String?)
        case interrupt
    }

    private static let request = "The six digits on its screen: "
    /// How many addresses of this device the user is shown: 3. The first may be that of a container's bridge.
    private static let addressesShown = 3

    private let server: InvitationServer
    private let announcement: InvitationDiscovery
    private let account: AccountID
    /// The last event of the announcement that the user was told of.
    private var said: InvitationDiscovery.Event?
    /// Whether a question is open. A line that comes at another time is not taken for digits.
    private var isAsking = false
    /// Whether the digits were right, so that nobody is needed here any more.
    private var isRight = false
    /// Whether other digits than a joiner's were typed.
    private var hadWrongDigits = false

    init(_ server: InvitationServer, _ announcement: InvitationDiscovery, in account: AccountID) {
        self.server = server
        self.announcement = announcement
        self.account = account
    }

    mutating func run() async throws {
        let (inputs, feed) = AsyncStream<Input>.makeStream()
        await Interrupts.watch([SIGINT, SIGTERM, SIGHUP]) { feed.yield(.interrupt) }
        let reader = try ByteChannel(.standardInput)
        Task {
            while let line = await reader.readLine() { feed.yield(.line(line)) }
            feed.yield(.line(nil))
        }
        Task { [server] in
            for await event in server.events { feed.yield(.event(event)) }
            feed.finish()
        }
        Task { [announcement] in await announcement.run { feed.yield(.announcement($0)) } }
        explain()
        await server.start()
        for await input in inputs {
            switch input {
            case .event(let event): try await take(event)
            case .announcement(let event): take(event)
            case .line(let line): await take(line)
            case .interrupt:
                endLine()
                await server.stop(.turnedAway)
            }
        }
    }

    private func explain() {
        // A link-local IPv6 address needs the name of an interface of the other device.
        let usable = server.addresses.filter { !$0.isLinkLocal || $0.ipAddress?.isIPv4 == true }
        let addresses = usable.prefix(Self.addressesShown).map(Self.argument)
        Output.say(
            """
            Run `baton account join` on the new device. It shows six digits. Type them here
            within 10 minutes. If it finds no invitation:
            baton account join --address \(addresses.first ?? "ADDRESS")
            """)
        if addresses.count > 1 {
            Output.say("This device also has \(addresses.dropFirst().joined(separator: " and ")).")
        }
    }

    private mutating func take(_ event: InvitationDiscovery.Event) {
        // It would come into the middle of a question. A joiner has found the invitation by then.
        guard !isAsking, event != said else { return }
        said = event
        switch event {
        case .announced(let tag): Output.say("On the network, this invitation is \(tag).")
        case .unavailable(let reason):
            Output.say("The new device needs that address, since this invitation is not announced.\n\(reason)")
        case .found: break
        }
    }

    /// The shortest form of an address that `--address` reads.
    private static func argument(_ address: SocketAddress) -> String {
        if address.port == InvitationServer.port, let host = address.ipAddress { return "\(host)" }
        return "\(address)"
    }

    private mutating func take(_ line: String?) async {
        guard let line else {
            // Nobody can answer any more.
            if !isRight { await server.stop(.turnedAway) }
            return
        }
        guard isAsking else {
            if Invitation.digits(in: line) != nil, !isRight {
                Output.say("No device asks here yet: has the new device found this invitation, or another one?")
            }
            return
        }
        if line.allSatisfy(\.isWhitespace) {
            isAsking = false
            await server.turnAway()
        } else if let digits = Invitation.digits(in: line) {
            isRight = await server.enter(digits)
            if isRight { isAsking = false }
        } else {
            Output.prompt("Type all six digits, such as 482 913: ")
        }
    }

    private mutating func take(_ event: Invitation.Event) async throws {
        switch event {
        case .asked:
            Output.say("A device asks to join. Enter alone turns it away.")
            Output.prompt(Self.request)
            isAsking = true
        case .wrong(let left):
            hadWrongDigits = true
            Output.prompt("Those are not its digits. \(Self.tries(left)): ")
        case .lost(let left):
            endLine()
            Output.say("That device is gone. \(Self.tries(left)). Waiting for another...")
        case .right:
            isAsking = false
            Output.say("Right. This is account \(account). Now answer on the new device.")
        case .joined(let name, let device):
            Output.say("\(SafeText.escaped(name)) (\(device.short)) is in the account now.")
        case .unconfirmed(let device):
            throw CommandError.failed(
                "the new device did not say that it joined: invite it again, or lock it out with"
                    + " `baton devices revoke \(device)`")
        case .over(let reason):
            endLine()
            throw failure(reason)
        case .failed(let reason):
            throw CommandError.failed("the account cannot be handed over: \(reason)")
        }
    }

    /// Ends the line of an open question.
    private mutating func endLine() {
        if isAsking { Output.say("") }
        isAsking = false
    }

    private static func tries(_ left: Int) -> String { left == 1 ? "1 try is left" : "\(left) tries are left" }

    private func failure(_ reason: PairingEnd) -> CommandError {
        switch reason {
        case .digits:
            let suspicion = hadWrongDigits ? "; if you mistyped nothing, somebody may be in the middle" : ""
            return CommandError(
                .refused,
                "three tries failed, so this invitation is over\(suspicion): invite again, or join with the account key"
            )
        case .time:
            return .failed("nobody joined within 10 minutes: run `baton account invite` again")
        default:
            Output.say("The invitation is over. Nothing was changed.")
            return .interrupted
        }
    }
}
