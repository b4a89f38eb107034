import BatonDiscovery
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTLS
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Logging
import SystemPackage
import Testing

@testable import BatonAccount
@testable import BatonNode
@testable import BatonWeb

/// Handoffs of this device, none of which begins.
@Suite("Table of handoffs")
struct HandoffTableTests {
    /// What a handoff would need if it began.
    private struct Parts {
        let account: TestAccount
        let connections: PeerConnections
        let documents: DocumentService
        let applications: Applications
        let files: SharedFiles

        init() throws {
            account = try TestAccount(devices: 1)
            let (loop, storage) = (EventLoop(name: "table"), try BlockingExecutor(name: "table"))
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let device = account.devices[0]
            let current = CurrentAccount(device.account)
            files = SharedFiles(path: "/nonexistent/roots", userHome: nil, on: storage, logger: logger)
            let offers = Offers(on: loop, files: files) { _ in }
            let budget = NodeBudget(NodeLimits())
            documents = DocumentService(
                offers: offers, pool: budget.documents,
                ledger: try PartFileLedger(stateFolder: account.root.appending("parts")), limit: TransferLimit())
            let directory = PeerDirectory(
                account: current, store: device.store, replayGuard: ReplayGuard(), known: KnownDevices(),
                discovery: ServiceDiscovery(loop: loop, executor: storage), storage: storage, on: loop, logger: logger)
            let exchange = StateExchange(
                account: current, store: device.store, storage: storage, directory: directory, on: loop, logger: logger)
            connections = PeerConnections(
                context: try TLSContext(identity: TLSIdentity(device.account.identity)), account: current,
                exchange: exchange, directory: directory,
                service: PeerService(
                    offers: offers, documents: documents, exchange: exchange, streams: budget.streams),
                offers: offers, loops: EventLoopGroup(name: "table", count: 1), limits: NodeLimits(),
                budget: budget.devices, on: loop, logger: logger)
            let home = try Home(environment: ["BATON_HOME": account.root.string])
            applications = Applications(
                keeper: ApplicationKeeper(home: home, environment: [:], on: storage, logger: logger),
                handoffSwitch: HandoffSwitchKeeper(
                    path: home.configurationFolder + "/handoff", on: storage, logger: logger),
                associations: SiteAssociations(logger: logger) { _ throws(SiteAssociationError) in
                    try SiteAssociation([])
                }, on: loop, logger: logger)
        }

        func handoff() -> Handoff {
            Handoff(
                Handoff.Plan(activity: .init(), origin: PeerName(id: "a", name: "a"), destination: nil),
                connections: connections, documents: documents, applications: applications, files: files,
                deadlines: HandoffDeadlines())
        }
    }

    @Test("So many handoffs under way, beside those that applications hold on to")
    func bound() async throws {
        let (parts, table) = (try Parts(), HandoffTable())
        #expect(HandoffTable.bound == 32)
        var entered: [Handoff] = []
        for _ in 0..<HandoffTable.bound {
            let handoff = parts.handoff()
            try await table.insert(handoff)
            entered.append(handoff)
        }
        let late = parts.handoff()
        let error = await #expect(throws: HandoffError.self) { try await table.insert(late) }
        #expect(error?.code == .limitExceeded)
        #expect(await table[late.id] == nil)
        // One that is over has made room for another, and so has one that an application has now.
        await table.remove(entered[0])
        try await table.insert(late)
        await #expect(throws: HandoffError.self) { try await table.insert(parts.handoff()) }
        await table.hold(entered[1], by: "org.example.reader")
        try await table.insert(parts.handoff())
        await #expect(throws: HandoffError.self) { try await table.insert(parts.handoff()) }
        #expect(await table[entered[1].id] === entered[1])
    }
}
