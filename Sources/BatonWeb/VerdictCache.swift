// SPDX-License-Identifier: Apache-2.0

import BatonApplications

/// The answers of hosts, for as long as they count. The least recently used one is evicted first.
///
/// It is in memory only. A file would tell which sites a person visits, and asking each host again after a restart is
/// cheap.
struct VerdictCache {
    /// The most hosts that are remembered.
    static let maximumHosts = 256
    /// The most bytes of all answers, about. One site's file can have 128 KiB of names.
    static let maximumCost = 1 << 20

    /// How long a site's list counts.
    static let validity: Duration = .seconds(24 * 60 * 60)
    /// How long it counts that a host gave no list that can be believed.
    static let validityOfRefusal: Duration = .seconds(60 * 60)
    /// How long it counts that a host or the network was away.
    static let validityOfOutage: Duration = .seconds(60)

    private struct Entry {
        let host: WebHost
        /// Nil if the host has no list.
        let association: SiteAssociation?
        let end: Duration

        /// A failure costs the name.
        var cost: Int { association?.cost ?? 128 }
    }

    /// The one used last is last.
    private var entries: [Entry] = []

    /// How many hosts are remembered.
    var count: Int { entries.count }

    /// The cached answer of a host: nil without one; `.some(nil)` if the host has no list.
    mutating func association(of host: WebHost, at now: Duration) -> SiteAssociation?? {
        guard let index = entries.firstIndex(where: { $0.host == host }) else { return nil }
        let entry = entries.remove(at: index)
        guard now < entry.end else { return nil }
        entries.append(entry)
        return .some(entry.association)
    }

    /// Caches the answer of a host, or the reason why it gave none; evicts others if needed.
    mutating func remember(
        _ outcome: Result<SiteAssociation, SiteAssociationError>, of host: WebHost, at now: Duration
    ) {
        entries.removeAll { $0.host == host || $0.end <= now }
        switch outcome {
        case .success(let association):
            entries.append(Entry(host: host, association: association, end: now + Self.validity))
        case .failure(let error):
            switch error.validity {
            case .answer: entries.append(Entry(host: host, association: nil, end: now + Self.validityOfRefusal))
            case .outage: entries.append(Entry(host: host, association: nil, end: now + Self.validityOfOutage))
            case .none: return
            }
        }
        var cost = entries.reduce(0) { $0 + $1.cost }
        while entries.count > Self.maximumHosts || cost > Self.maximumCost {
            cost -= entries.removeFirst().cost
        }
    }
}
