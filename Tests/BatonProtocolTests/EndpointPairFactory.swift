// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import Testing

/// Pairs whose HELLOs are exchanged.
enum EndpointPairFactory {
    static func connected(
        seed: UInt64 = 1, link: EndpointPair.Link = .init(), dialer: Limits = Limits(), acceptor: Limits = Limits()
    ) -> EndpointPair {
        let pair = EndpointPair(seed: seed, link: link, dialerLimits: dialer, acceptorLimits: acceptor)
        pair.run { pair.dialer.session.peer != nil && pair.acceptor.session.peer != nil }
        return pair
    }
}
