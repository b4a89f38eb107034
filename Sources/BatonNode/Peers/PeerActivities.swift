// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import FoundationEssentials
import SwiftProtobuf

/// The activities of other devices. A device that has more than it advertises, or changes them more often than it may
/// announce, is asked.
///
/// Only a user's listing or accepting calls it, because asking makes a connection.
@ControlLoop
final class PeerActivities {
    /// How often who watches asks a device again that changes more often than it may announce.
    private static let watchInterval = Duration.seconds(1)
    /// How soon who watches asks again a device that could not be asked.
    private static let askInterval = Duration.seconds(30)

    /// An activity, who offers it, and what the user's policy has to say of it.
    struct Found {
        let activity: WireActivitySummary
        let origin: PeerName
        /// See ``Handoff/Plan/candidates``.
        let candidates: [AcceptPolicy.Rule]
    }

    /// One device's list, good for who watches until the device announces something else.
    private struct Answer {
        let news: UInt64
        let summaries: [WireActivitySummary]
    }

    /// Why somebody wants to know what a device offers.
    enum Purpose: Sendable {
        /// Nobody is asked.
        case advertised
        /// A user looks now.
        case look
        /// A user watches: the same is asked again and again.
        case watch
    }

    private let directory: PeerDirectory
    private let connections: PeerConnections
    private let policy: PolicyKeeper
    private let handoffSwitch: HandoffSwitchKeeper
    private let applications: Applications
    /// How long one device may take to be reached and to tell its activities. Default 3 s.
    let answerDeadline: Duration
    private var answers: [DeviceID: Answer] = [:]
    /// Devices whose advertisements (by ``Peer/news``) are of activities that they offer no more, as they said when
    /// asked.
    private var outdated: [DeviceID: UInt64] = [:]
    /// The last 64 activities that a listing told of, of at most 1.5 KiB each (``WireActivitySummary/bounded``). The
    /// next listing says which of them have gone.
    private var told: [WireActivityListing] = []
    private static let toldBound = 64

    nonisolated init(
        directory: PeerDirectory, connections: PeerConnections, policy: PolicyKeeper,
        handoffSwitch: HandoffSwitchKeeper, applications: Applications, answerDeadline: Duration = .seconds(3)
    ) {
        self.answerDeadline = answerDeadline
        self.handoffSwitch = handoffSwitch
        self.applications = applications
        self.directory = directory
        self.connections = connections
        self.policy = policy
    }

    /// All activities that the user's policy does not refuse, and that not only applications continue for which Handoff
    /// is off, each device's current one first.
    ///
    /// - Parameter withRefused: the others as well, marked; and those that have gone of which the user was told, as
    ///   removed.
    func all(for purpose: Purpose, withRefused: Bool = false) async -> [WireActivityListing] {
        guard handoffSwitch.current.isOn else { return [] }
        let policy = await policy.current()
        let peers = directory.present
        answers = answers.filter { entry in peers.contains { $0.device == entry.key } }
        outdated = outdated.filter { entry in peers.contains { $0.device == entry.key } }
        switch purpose {
        case .advertised, .look: break
        case .watch:
            // Where an application is off, what is listed depends on what is installed, which nothing tells of.
            let isOff = !handoffSwitch.current.offApplications.isEmpty
            if isOff || peers.contains(where: isDoubtful) { directory.remind(after: Self.watchInterval) }
        }
        let allowed = await withTaskGroup(of: (Int, [WireActivityListing]).self) { group in
            // Of those that nothing has proved only some are dialled at a time: not always the same.
            for (index, peer) in peers.enumerated().shuffled() {
                group.addTask { (index, await self.listings(of: peer, for: purpose, isNamed: false)) }
            }
            var byPeer: [Int: [WireActivityListing]] = [:]
            for await (index, listings) in group { byPeer[index] = listings }
            return peers.indices.flatMap { index in
                (byPeer[index] ?? []).compactMap { Self.judged($0, of: peers[index], by: policy, withRefused) }
            }
        }
        if purpose == .watch, allowed.contains(where: \.incomplete) { directory.remind(after: Self.askInterval) }
        var listed: [WireActivityListing] = []
        for (var listing, switchedOff) in zip(allowed, await applications.switchedOff(for: allowed.map(\.activity))) {
            listing.switchedOff = switchedOff
            if withRefused || listing.switchedOff.isEmpty { listed.append(listing) }
        }
        let before = told.filter { old in !listed.contains { $0.key == old.key } }
        told = (before + listed.filter { $0.refusedBy.isEmpty && $0.switchedOff.isEmpty }).suffix(Self.toldBound)
        guard withRefused else { return listed }
        return listed
            + before.map { gone in
                var gone = gone
                gone.change = .removed
                return gone
            }
    }

    /// One activity of one device.
    ///
    /// - Parameter namesDocument: which document it is has to be known, of which an advertisement does not tell.
    func find(
        _ id: ActivityID, on device: String, namesDocument: Bool
    ) async throws(HandoffError) -> Found {
        guard let peer = directory.peer(device), peer.isPresent else {
            throw HandoffError(.noSuchActivity, "the device \(device.prefix(8)) is not announced on this network now")
        }
        var summaries = await listings(of: peer, for: .look, isNamed: true).map(\.activity)
        var chosen = summaries.first { ActivityID($0.id) == id }
        let isUnnamed = namesDocument && chosen.map { $0.kind == .document && $0.identity == .unknown } == true
        if chosen == nil || isUnnamed, let asked = await ask(peer, for: .look, isNamed: true) {
            summaries = asked
            chosen = summaries.first { ActivityID($0.id) == id }
            // Its advertisement may be old. The next listing asks it as well.
            if chosen == nil { outdated[peer.device] = peer.news }
        }
        guard let chosen else { throw HandoffError(noLongerOfferedBy: peer.name, now: summaries.first) }
        let subject = AcceptPolicy.Subject(peer, type: chosen.type, size: chosen.documentSize)
        let policy = await policy.current()
        if let rule = policy.refusal(of: subject) { throw HandoffError(refusedBy: rule) }
        return Found(activity: chosen, origin: peer.peerName, candidates: policy.candidates(for: subject))
    }

    /// A device has said that it does not offer an activity: where it advertises it all the same, that is old.
    func noteGone(_ activity: WireActivitySummary, of origin: PeerName) {
        guard let peer = directory.peer(origin.id), peer.current.map({ Data($0.id) }) == activity.id else {
            return
        }
        outdated[peer.device] = peer.news
    }

    /// Whether what a device advertises is known not to be all, or not to be true.
    private func isDoubtful(_ peer: Peer) -> Bool {
        peer.isUncounted || outdated[peer.device] == peer.news
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

    /// - Parameter isNamed: whether the user has named an activity of this device.
    private func listings(of peer: Peer, for purpose: Purpose, isNamed: Bool) async -> [WireActivityListing] {
        var summaries = peer.current.map { [WireActivitySummary($0, since: peer.currentSince)] } ?? []
        var isIncomplete = false
        if peer.others > 0 || isDoubtful(peer), purpose != .advertised {
            // Newer than what was announced, and with whole titles.
            if let asked = await ask(peer, for: purpose, isNamed: isNamed) {
                summaries = asked
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

    private func ask(_ peer: Peer, for purpose: Purpose, isNamed: Bool) async -> [WireActivitySummary]? {
        if purpose == .watch, !isDoubtful(peer), let answer = answers[peer.device], answer.news == peer.news {
            return answer.summaries
        }
        let device = peer.device.description
        let connections = connections
        let summaries = try? await withDeadline(answerDeadline, "\(peer.name) did not list its activities") {
            try await connections.connection(to: device, isWanted: isNamed).offeredActivities()
        }
        if let summaries {
            answers[peer.device] = Answer(news: peer.news, summaries: summaries)
        }
        return summaries
    }
}

extension HandoffError {
    /// An activity was withdrawn or replaced.
    ///
    /// - Parameter current: what the device offers now, first of all.
    init(noLongerOfferedBy device: String, now current: WireActivitySummary?) {
        let replacement = current.flatMap { current in
            ActivityID(current.id).map { " and offers “\(current.title)” now, \($0.description.prefix(8))" }
        }
        self.init(
            .noSuchActivity, "\(device) no longer offers the activity" + (replacement ?? ""), device: device)
    }
}

extension WireActivityListing: ListedLine {
    var key: [Data] { [activity.id, Data(deviceID.utf8)] }

    func isTold(by other: Self) -> Bool {
        // Since when is known from an age, which is another by a second now and then.
        var (own, others) = (activity, other.activity)
        (own.since, others.since) = (0, 0)
        return own == others && device == other.device
    }

    init(_ told: ToldListing<Self>.Change) {
        switch told {
        case .removed(let line): (self, change) = (line, .removed)
        case .added(let line): (self, change) = (line, .added)
        case .updated(let line): (self, change) = (line, .updated)
        }
    }
}

extension WireActivitySummary {
    /// The part of an activity that an advertisement tells.
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
package enum ActivityType {
    /// A web page, as Apple's `NSUserActivityTypeBrowsingWeb`.
    package static let browsingWeb = "NSUserActivityTypeBrowsingWeb"
    /// A file without a more telling type: the uniform type identifier of any bytes.
    package static let document = "public.data"
    /// A folder: the uniform type identifier of folders.
    package static let folder = "public.folder"
}
