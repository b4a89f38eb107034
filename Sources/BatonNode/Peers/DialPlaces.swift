// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// Who is being dialled in brief: devices that no connection has proved and that no user has named. A pure value.
///
/// What the node asks of such devices by itself, such as for a listing, or who they are, finds so many places, so that
/// devices which somebody invents cost no more than that.
struct DialPlaces {
    /// See ``NodeLimits/unprovedDials``.
    let bound: Int
    /// How many of them may share an address: half, so that whoever announces many devices at his own keeps the others
    /// from no place.
    private var boundPerAddress: Int { bound / 2 }

    private var dialled: [String: Set<IPAddress>] = [:]

    init(bound: Int) {
        self.bound = bound
    }

    /// A device is dialled from now on, until ``leave(_:)``.
    ///
    /// - Returns: whether it may be.
    mutating func enter(_ device: String, at addresses: [IPAddress]) -> Bool {
        let isShared = addresses.contains { address in
            dialled.values.count { $0.contains(address) } >= boundPerAddress
        }
        guard dialled.count < bound, !isShared else { return false }
        dialled[device] = Set(addresses)
        return true
    }

    mutating func leave(_ device: String) { dialled[device] = nil }
}
