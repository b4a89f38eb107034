// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonAccount
import BatonApplications
import BatonDiscovery
import BatonEventLoop
import BatonMessages
import BatonNode
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// One run of the doctor: measures, and has ``Diagnosis`` judge.
struct DoctorExamination {
    /// How long the node may take to answer what it knows: 3 s. It needs milliseconds.
    private static let patience = Duration.seconds(3)
    /// How long the ear listens at the least: 4 s. Silence of a shorter time says nothing.
    private static let listening = Duration.seconds(4)
    /// When the node is asked to examine the road, if the device is not heard before: 1.5 s.
    private static let hearing = Duration.milliseconds(1500)
    /// How long other programs may take to answer what this machine has: 2 s.
    private static let searching = Duration.seconds(2)
    /// When measuring ends, from the beginning on: 9 s.
    private static let limit = Duration.seconds(9)

    /// The device whose road is examined, or that is asked to connect back.
    struct Target {
        let id: DeviceID
        let name: String
        let isRevoked: Bool
    }

    private let began = ContinuousClock.now
    private let home: Home
    private let node: NodeAnswer
    private let devices: [WireDevice]
    private let areListsApart: Bool
    private let facts: MachineFacts
    /// Nil if the user has named no device, or there is no account.
    let target: Target?
    private let isForDevice: Bool
    let machine: [Finding]

    /// Reads what needs no network.
    ///
    /// - Parameter device: as the user names it.
    /// - Throws: ``CommandError`` if no such device is known.
    init(home: Home, device: String?) async throws {
        let store = CommandEnvironment.accountStore(home)
        var facts = MachineFacts.read(home, store)
        // Else nothing can be sent and heard.
        if facts.canWatch {
            async let canInstallNode = value(within: Self.searching) { (try? await UserService.find()) != nil }
            (node, devices, areListsApart) = await Self.ask(home)
            facts.canInstallNode = await canInstallNode ?? false
        } else {
            (node, devices, areListsApart) = (.silent(Cause.fewWatches.sentence("")), [], false)
        }
        (self.home, self.facts) = (home, facts)
        machine = Diagnosis.machine(facts, node: node)
        isForDevice = device != nil
        target = try device.flatMap { [facts, devices] in try Self.find($0, facts.account, store, devices) }
    }

    /// Measures the network, and the road to the device. Call it once.
    func network() async throws -> [Finding] {
        guard facts.canWatch else {
            return unmeasured(.network, because: Cause.fewWatches.sentence(""))
                + (isForDevice ? unmeasured(.road, because: Cause.fewWatches.sentence("")) : [])
        }
        let interfaces = NetworkFacts.ofInterfaces()
        let asked = askedDevice()
        let (label, other) = (InstanceName.random(), InstanceName.random())
        let executor: BlockingExecutor
        do {
            executor = try BlockingExecutor(name: "responder")
        } catch {
            throw CommandError.failed("no thread can be started: \(error)")
        }
        let ear = MulticastEar(
            saying: label, listeningFor: other, asking: asked.map(addresses) ?? [],
            interfaces: interfaces.addresses, on: EventLoop(name: "doctor"), executor: executor)
        defer { ear.close() }
        let chosen = interfaces.leading(ear.report.interfaces, towards: asked.map(addresses) ?? []).first?.name
        async let filter = value(within: Self.searching) { await PacketFilter.current(at: chosen) }
        let (start, limit) = (ContinuousClock.now, Self.limit)
        let running = Task { await ear.run(for: limit) }
        defer { running.cancel() }
        var answer = Measured<WireExamineResponse>.missing(reasonForNone)
        var isFresh = false
        if let asked, case .status = node {
            while ContinuousClock.now - start < Self.hearing, record(of: asked.id, in: ear.report) == nil {
                try await Task.sleep(for: .milliseconds(100))
            }
            let request = WireExamineRequest.with {
                $0.deviceID = asked.id.description
                $0.record = Data(record(of: asked.id, in: ear.report) ?? [])
                ($0.say, $0.listenFor) = (label, other)
            }
            isFresh = !request.record.isEmpty
            answer = await examine(request)
        }
        let end = min(start + Self.listening, began + Self.limit)
        if ContinuousClock.now < end { try await Task.sleep(until: end, clock: .continuous) }
        var machine = facts
        machine.filter = await filter ?? .unknown
        return judge(machine, interfaces, ear.report, answer, asked, isFresh: isFresh)
    }

    private func judge(
        _ facts: MachineFacts, _ interfaces: NetworkFacts, _ report: MulticastEar.Report,
        _ answer: Measured<WireExamineResponse>, _ asked: Target?, isFresh: Bool
    ) -> [Finding] {
        var heard = report
        let devices = facts.account.map { HeardDevices(heard, account: $0) }
        var known = asked.map(addresses) ?? []
        if let asked, let device = devices?.devices[asked.id] {
            let announced = device.advertisement.content.addresses.compactMap { IPAddress(bytes: $0.bytes) }
            known += (announced.filter { !$0.isLinkLocal } + device.sources).filter { !known.contains($0) }
        }
        // Bridges of containers have the same address on many machines.
        let own = (try? InterfaceAddress.current(includingIdle: true)) ?? []
        known.removeAll { address in own.contains { $0.address == address } }
        heard.interfaces = interfaces.leading(report.interfaces, towards: known)
        var status = WireStatusResponse()
        if case .status(let value) = node { status = value }
        let network =
            Diagnosis.network(
                facts, unannounced: status.isUnannounced ? status.responder : nil,
                hasMetOthers: !self.devices.isEmpty, heard: heard, devices: devices)
            + [Diagnosis.incoming(answer, asked: asked?.name ?? "", status: status, facts)]
        guard let target else {
            return network
                + (isForDevice ? unmeasured(.road, because: "this device has no account that can be used") : [])
        }
        let apart = areListsApart ? facts.account?.state.revoked.map(\.description).sorted() : nil
        let road = RoadFacts(
            id: target.id, name: target.name, isRevoked: target.isRevoked, apartRevocations: apart ?? [],
            addresses: known, routes: RoadFacts.routes(to: known, from: interfaces.addresses), heard: heard,
            devices: devices, answered: answer, isFresh: isFresh)
        return network + road.findings
    }

    private func unmeasured(_ group: Check.Group, because reason: String) -> [Finding] {
        Check.allCases.filter { $0.group == group }.map { Finding.notMeasured($0, because: reason) }
    }

    // MARK: - Devices

    private static func find(
        _ text: String, _ account: Account?, _ store: AccountStore, _ devices: [WireDevice]
    ) throws -> Target? {
        guard let account else { return nil }
        var known =
            devices.isEmpty
            ? ((try? store.loadKnownDevices())?.entries ?? []).map { KnownDevice($0) } : devices.map { KnownDevice($0) }
        // A device that no connection has reached yet is one that the doctor is for.
        for index in known.indices { known[index].isProved = true }
        let found = try DeviceChoice(
            ownID: account.identity.id.description, ownName: account.deviceName, known: known,
            revoked: account.state.revoked.map(\.description)
        ).find(text)
        guard let id = DeviceID(found.id) else { throw CommandError.usage(DeviceChoice.noSuchDevice(text)) }
        return Target(id: id, name: found.name, isRevoked: account.isRevoked(id))
    }

    /// The device that is asked to connect back: the one in question, or any that is here.
    private func askedDevice() -> Target? {
        if isForDevice { return target }
        guard let device = devices.first(where: { $0.present && $0.proved }) ?? devices.first(where: \.present),
            let id = DeviceID(device.deviceID)
        else { return nil }
        return Target(id: id, name: device.name, isRevoked: false)
    }

    private func addresses(of target: Target) -> [IPAddress] {
        let device = devices.first { $0.deviceID == target.id.description }
        var addresses: [IPAddress] = []
        for text in device?.addresses ?? [] {
            guard let address = SocketAddress(text)?.ipAddress, !addresses.contains(address) else { continue }
            addresses.append(address)
        }
        return addresses
    }

    private func record(of device: DeviceID, in report: MulticastEar.Report) -> [UInt8]? {
        facts.account.flatMap { HeardDevices(report, account: $0).devices[device]?.record }
    }

    // MARK: - The node

    private var reasonForNone: String {
        switch node {
        case .status: "no other device is here to connect back"
        case .absent: Cause.noNode.sentence("")
        case .silent(let reason): reason
        }
    }

    private static func ask(_ home: Home) async -> (NodeAnswer, [WireDevice], Bool) {
        await value(within: patience) {
            do throws(NodeClientError) {
                let client = try await NodeClient.connect(to: home)
                let status = try? await client.status()
                let devices = try? await client.devices()
                await client.close()
                guard let status else { return (.silent("the node ended the connection without an answer"), [], false) }
                return (.status(status), devices?.devices ?? [], devices?.listsApart ?? false)
            } catch {
                switch error {
                case .noNode: return (.absent, [], false)
                case .notTaken, .notUsable: return (.silent("\(error)"), [], false)
                }
            }
        } ?? (.silent("the node does not answer within \(patience.components.seconds) s"), [], false)
    }

    private func examine(_ request: WireExamineRequest) async -> Measured<WireExamineResponse> {
        await value(within: began + Self.limit - .now) { [home] in
            do {
                let client = try await NodeClient.connect(to: home)
                let answer = try await client.examine(request)
                await client.close()
                return .value(answer)
            } catch {
                return .missing("the node cannot examine the road: \(error)")
            }
        } ?? .missing("there was no answer within \(Self.limit.components.seconds) s")
    }
}
