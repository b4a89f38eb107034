import BatonAccount
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// What the other devices offer: the advertised activities, and the rest of devices that have more, which are asked.
///
/// Lives on the node's control loop. Only a user's listing or accepting calls it, because asking makes a connection.
actor PeerActivities {
    /// How long one device may take to tell its activities.
    private static let answerDeadline = Duration.seconds(3)
    /// Activities that are taken from one device.
    private static let listBound = NodeLimits().offers

    /// One device's list, good for as long as its advertisement says the same.
    private struct Answer {
        let current: [UInt8]?
        let others: Int
        let summaries: [WireActivitySummary]
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let directory: PeerDirectory
    private let connections: PeerConnections
    private let policy: PolicyKeeper
    private let handoffSwitch: HandoffSwitchKeeper
    private var answers: [DeviceID: Answer] = [:]

    init(
        directory: PeerDirectory, connections: PeerConnections, policy: PolicyKeeper,
        handoffSwitch: HandoffSwitchKeeper, on loop: EventLoop
    ) {
        self.handoffSwitch = handoffSwitch
        self.loop = loop
        self.directory = directory
        self.connections = connections
        self.policy = policy
    }

    /// All activities that the user's policy does not refuse, each device's current one first.
    ///
    /// - Parameters:
    ///   - advertisedOnly: ask nobody.
    ///   - withRefused: the refused ones as well, marked.
    func all(advertisedOnly: Bool, withRefused: Bool = false) async -> [WireActivityListing] {
        guard await handoffSwitch.current.isOn else { return [] }
        let policy = await policy.current()
        let peers = await directory.present
        answers = answers.filter { entry in peers.contains { $0.device == entry.key } }
        return await withTaskGroup(of: (Int, [WireActivityListing]).self) { group in
            for (index, peer) in peers.enumerated() {
                group.addTask { (index, await self.listings(of: peer, advertisedOnly: advertisedOnly)) }
            }
            var byPeer: [Int: [WireActivityListing]] = [:]
            for await (index, listings) in group { byPeer[index] = listings }
            return peers.indices.flatMap { index in
                (byPeer[index] ?? []).compactMap { Self.judged($0, of: peers[index], by: policy, withRefused) }
            }
        }
    }

    /// One activity of one device.
    func find(_ id: ActivityID, on device: String) async throws(HandoffError) -> (WireActivitySummary, PeerName) {
        guard let peer = await directory.peer(device), peer.isPresent else {
            throw HandoffError(.noSuchActivity, "the device \(device.prefix(8)) is not announced on this network now")
        }
        for listing in await listings(of: peer, advertisedOnly: false)
        where ActivityID(listing.activity.id) == id {
            if let rule = await policy.current().refusal(of: Self.subject(listing, of: peer)) {
                throw HandoffError(.refused, "the accept policy of this device refuses it. Line \(rule.line): \(rule).")
            }
            return (listing.activity, peer.peerName)
        }
        throw HandoffError(.noSuchActivity, "\(peer.name) no longer offers the activity", device: peer.name)
    }

    /// A listing as it is told: marked or left out where the policy refuses it.
    private static func judged(
        _ listing: WireActivityListing, of peer: Peer, by policy: AcceptPolicy, _ withRefused: Bool
    ) -> WireActivityListing? {
        guard let rule = policy.refusal(of: subject(listing, of: peer)) else { return listing }
        guard withRefused else { return nil }
        var listing = listing
        listing.refusedBy = "line \(rule.line): \(rule)"
        return listing
    }

    private static func subject(_ listing: WireActivityListing, of peer: Peer) -> AcceptPolicy.Subject {
        AcceptPolicy.Subject(peer, type: listing.activity.type, size: listing.activity.documentSize)
    }

    private func listings(of peer: Peer, advertisedOnly: Bool) async -> [WireActivityListing] {
        guard let current = peer.current else { return [] }
        var summaries = [WireActivitySummary(current, since: peer.currentSince)]
        var isIncomplete = false
        if peer.others > 0, !advertisedOnly {
            if let asked = await ask(peer) {
                // The title in the advertisement is cut to what fits; the device's own answer has all of it.
                summaries = asked.contains { $0.id == summaries[0].id } ? asked : summaries + asked
            } else {
                isIncomplete = true
            }
        }
        return summaries.map { summary in
            .with {
                $0.activity = summary
                $0.device = peer.name
                $0.deviceID = peer.device.description
                $0.incomplete = isIncomplete
            }
        }
    }

    private func ask(_ peer: Peer) async -> [WireActivitySummary]? {
        if let answer = answers[peer.device], answer.current == peer.current?.id, answer.others == peer.others {
            return answer.summaries
        }
        let device = peer.device.description
        let connections = connections
        let summaries = try? await withDeadline(Self.answerDeadline, "\(peer.name) did not list its activities") {
            let (_, stream) = try await connections.connection(to: device).request(.activityList(.init()))
            await stream.finish()
            var summaries: [WireActivitySummary] = []
            for try await summary in stream.records(of: WireActivitySummary.self) {
                guard summaries.count < Self.listBound else { break }
                if let summary = summary.bounded { summaries.append(summary) }
            }
            return summaries
        }
        if let summaries {
            answers[peer.device] = Answer(current: peer.current?.id, others: peer.others, summaries: summaries)
        }
        return summaries
    }
}

extension WireActivitySummary {
    /// What a device says of an activity, cut to what a listing shows; `nil` when it is no activity at all.
    var bounded: WireActivitySummary? {
        guard id.count == ActivityID.size, !type.isEmpty, type.utf8.count <= AdvertisedActivity.maximumTypeCount else {
            return nil
        }
        var bounded = self
        bounded.title = Self.beginning(of: title, bytes: OfferedActivity.titleBound)
        return bounded
    }

    /// The longest beginning that fits into so many bytes and ends between two characters. From the front: to find the
    /// last character of a row of flags, all of them have to be looked at.
    private static func beginning(of text: String, bytes limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var end = text.startIndex
        while true {
            let next = text.index(after: end)
            guard text.utf8.distance(from: text.startIndex, to: next) <= limit else { return String(text[..<end]) }
            end = next
        }
    }

    /// What an advertisement tells of an activity.
    init(_ activity: AdvertisedActivity, since: UInt64) {
        self.init()
        id = Data(activity.id)
        type = activity.type
        title = activity.title
        documentSize = activity.documentSize
        self.since = since
        supportsContinuationStreams = activity.flags.contains(.streams)
        hasWebPage_p = activity.flags.contains(.webPage)
        exclusive = activity.flags.contains(.exclusive)
        teamTag = Data(activity.teamTag)
        version = activity.version
        kind =
            if activity.flags.contains(.document) {
                .document
            } else if activity.type == ActivityType.browsingWeb {
                .web
            } else {
                .application
            }
    }
}

/// The activity types that Baton itself gives.
public enum ActivityType {
    /// A web page, as Apple's `NSUserActivityTypeBrowsingWeb`.
    public static let browsingWeb = "NSUserActivityTypeBrowsingWeb"
    /// A file without a more telling type: the uniform type identifier of any bytes.
    public static let document = "public.data"
    /// A folder: the uniform type identifier of folders.
    public static let folder = "public.folder"
}
