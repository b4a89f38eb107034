// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonTLS
import BatonTestSupport
import BatonTransport
import FoundationEssentials
import Logging
import SystemPackage

@testable import BatonAccount
@testable import BatonDiscovery
@testable import BatonNode
@testable import BatonWeb

/// The parts of a node of an account's first device. It neither listens nor announces itself, and hears what the
/// test lets be announced.
struct NodeParts {
    let account: TestAccount
    let loop = ControlLoop.loop
    let offers: Offers
    let discovery: ServiceDiscovery
    let directory: PeerDirectory
    let connections: PeerConnections
    let exchange: StateExchange
    let documents: DocumentService
    let handoffSwitch: HandoffSwitchKeeper
    let applications: Applications
    let files: SharedFiles

    /// - Parameters:
    ///   - replayGuard: what was heard in an earlier run.
    ///   - known: the devices that were known in one.
    init(
        _ account: TestAccount, replayGuard: ReplayGuard = ReplayGuard(), known: KnownDevices = KnownDevices(),
        limits: NodeLimits = NodeLimits()
    ) throws {
        self.account = account
        let storage = try BlockingExecutor(name: "parts")
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let device = account.devices[0]
        let current = CurrentAccount(device.account)
        files = SharedFiles(path: "/nonexistent/roots", on: storage, logger: logger)
        offers = Offers(files: files) {}
        let budget = NodeBudget(limits)
        documents = DocumentService(
            offers: offers, pool: budget.documents,
            ledger: try PartFileLedger(stateFolder: account.root.appending("parts")), limit: TransferLimit(),
            previews: budget.previews, reads: budget.reads)
        discovery = ServiceDiscovery(loop: loop, executor: try BlockingExecutor(name: "discovery"))
        directory = PeerDirectory(
            account: current, store: device.store, replayGuard: replayGuard, known: known, discovery: discovery,
            logger: logger)
        exchange = StateExchange(
            account: current, store: device.store, directory: directory, logger: logger)
        connections = PeerConnections(
            context: try TLSContext(identity: TLSIdentity(device.account.identity)), account: current,
            exchange: exchange, directory: directory,
            service: PeerService(offers: offers, documents: documents, exchange: exchange, streams: budget.streams),
            offers: offers, loops: EventLoopGroup(name: "parts", count: 1), limits: limits,
            budget: budget.devices, logger: logger)
        let home = try Home(environment: ["BATON_HOME": account.root.string])
        handoffSwitch = HandoffSwitchKeeper(
            path: account.root.appending("handoff"), marker: account.root.appending("handoff-switched"),
            logger: logger)
        applications = Applications(
            home: home, environment: [:], recent: RecentApplications(), handoffSwitch: handoffSwitch,
            associations: SiteAssociations(logger: logger) { _ throws(SiteAssociationError) in
                try SiteAssociation([])
            }, logger: logger)
    }

    /// A record is on the network under a name.
    func announce(_ strings: [[UInt8]], under instance: String) async {
        await discovery.see(instance, "local.", on: 1, isAdded: true)
        await directory.handle(
            .record(instance: instance, interfaceIndex: 1, txt: strings.flatMap { [UInt8($0.count)] + $0 }))
    }

    /// A handoff that has not begun.
    func handoff(
        _ plan: Handoff.Plan = Handoff.Plan(
            activity: .init(), origin: PeerName(id: "a", name: "a"), candidates: [], destination: nil),
        deadlines: HandoffDeadlines = HandoffDeadlines()
    ) -> Handoff {
        Handoff(
            plan, connections: connections, documents: documents, applications: applications, files: files,
            deadlines: deadlines)
    }
}

extension Offers {
    /// Withdraws an activity, whichever offer it is of.
    func withdraw(_ activity: ActivityID) {
        decide { core in
            for offer in core.offered where offer.activity.id == activity { core.withdraw(offer.id) }
        }
    }
}
