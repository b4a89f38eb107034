// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import Testing

@testable import BatonWeb

struct VerdictCacheTests {
    private func host(_ number: Int) throws -> WebHost { try #require(WebHost("h\(number).example.org")) }

    private func failure(_ code: SiteAssociationError.Code) -> Result<SiteAssociation, SiteAssociationError> {
        .failure(SiteAssociationError(code, "it failed"))
    }

    @Test func validity() throws {
        var cache = VerdictCache()
        let host = try host(0)
        let file = try SiteAssociation(Site.file)
        #expect(cache.association(of: host, at: .zero) == nil)
        for (outcome, validity) in [
            (.success(file), Duration.seconds(86_400)), (failure(.notThere), .seconds(3600)),
            (failure(.signatureRefused), .seconds(3600)), (failure(.addressRefused), .seconds(3600)),
            (failure(.timedOut), .seconds(60)), (failure(.unreachable), .seconds(60)),
        ] as [(Result<SiteAssociation, SiteAssociationError>, Duration)] {
            let start = Duration.seconds(1_000_000)
            cache.remember(outcome, of: host, at: start)
            let last = cache.association(of: host, at: start + validity - .nanoseconds(1))
            #expect(last == .some(try? outcome.get()))
            #expect(cache.association(of: host, at: start + validity) == nil)
        }
    }

    @Test(arguments: [SiteAssociationError.Code.busy, .cancelled, .library])
    func notRemembered(_ code: SiteAssociationError.Code) throws {
        var cache = VerdictCache()
        cache.remember(failure(code), of: try host(0), at: .zero)
        #expect(cache.count == 0)
    }

    @Test func hostsAtTheBound() throws {
        var cache = VerdictCache()
        for number in 0..<VerdictCache.maximumHosts {
            cache.remember(failure(.notThere), of: try host(number), at: .zero)
        }
        #expect(cache.count == VerdictCache.maximumHosts)
        // The first is used again, so the second goes.
        #expect(cache.association(of: try host(0), at: .zero) != nil)
        cache.remember(failure(.notThere), of: try host(VerdictCache.maximumHosts), at: .zero)
        #expect(cache.count == VerdictCache.maximumHosts)
        #expect(cache.association(of: try host(0), at: .zero) != nil)
        #expect(cache.association(of: try host(1), at: .zero) == nil)
    }

    @Test func memoryAtTheBound() throws {
        var cache = VerdictCache()
        // The dearest file there can be: as many names as fit.
        let names = (0..<16_000).map { "\"a.\(String($0, radix: 36))\"" }.joined(separator: ",")
        let file = try SiteAssociation(Array(#"{"activitycontinuation":{"apps":[\#(names)]}}"#.utf8))
        #expect(file.cost > VerdictCache.maximumCost)
        let small = try SiteAssociation(Site.file)
        cache.remember(.success(small), of: try host(0), at: .zero)
        cache.remember(.success(file), of: try host(1), at: .zero)
        // Too dear by itself: nothing is kept, and nothing breaks.
        #expect(cache.count == 0)
        let half = try SiteAssociation(
            Array(#"{"activitycontinuation":{"apps":[\#(names.prefix(names.count / 3))"]}}"#.utf8))
        for number in 0..<10 {
            cache.remember(.success(half), of: try host(number), at: .zero)
            #expect(cache.count * half.cost <= VerdictCache.maximumCost)
        }
        #expect(cache.association(of: try host(9), at: .zero) == .some(half))
    }
}
