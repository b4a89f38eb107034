import BatonEventLoop
import BatonMessages
import BatonTestSupport
import BatonTransport
import SwiftProtobuf
import Testing

@testable import BatonNode
@testable import BatonProtocol

/// What the continuation streams of applications may cost the connections that they share.
@Suite("Rations of continuation streams", .timeLimit(.minutes(1)))
struct StreamRationTests {
    private static let everyBound = [
        StreamRation.Bound.device, StreamRation.Bound.toApplication, StreamRation.Bound.fromApplication,
    ]

    @Test("However streams are opened and reset, both ways of a connection keep below the budget of the other side")
    func belowBudget() {
        let began = ContinuousClock.now
        var (ways, open) = ([StreamRation](repeating: StreamRation(.device, now: began), count: 2), [0, 0])
        var budget = TokenBucket(Limits().resets, now: Instant(nanoseconds: 0))
        // Fills every place first, and aborts all at once; then each one as soon as it is there.
        for milliseconds in 0..<60_000 {
            let now = began + .milliseconds(milliseconds)
            for way in ways.indices {
                if let wait = ways[way].take(now: now) {
                    // Whoever waits aborts when the wait is over: never earlier than this asks for.
                    if wait > .zero { ways[way].giveBack() } else { open[way] += 1 }
                }
                guard milliseconds >= 10_000 else { continue }
                while open[way] > 0 {
                    open[way] -= 1
                    ways[way].giveBack()
                    let isWithin = budget.take(now: Instant(nanoseconds: UInt64(milliseconds) * 1_000_000))
                    #expect(isWithin)
                }
            }
        }
    }

    @Test("At each bound one more is refused, and a place that was given back is there again")
    func bounds() {
        for bound in Self.everyBound {
            let began = ContinuousClock.now
            var ration = StreamRation(bound, now: began)
            var now = began
            for _ in 0..<bound.burst { #expect(ration.take(now: now) == .zero) }
            // What comes faster than the rate waits, each longer than the one before.
            let paced = bound.perSecond * 2
            var waits: [Duration] = []
            for _ in 0..<(bound.open - bound.burst) {
                if let wait = ration.take(now: now) { waits.append(wait) }
            }
            #expect(waits.count == min(paced, bound.open - bound.burst))
            #expect(waits.first == .seconds(1) / bound.perSecond && waits == waits.sorted())
            #expect(waits.allSatisfy { $0 <= StreamRation.longestWait })

            now += .seconds(60)
            while ration.open < bound.open { #expect(ration.take(now: now) != nil) }
            now += .seconds(60)
            #expect(ration.take(now: now) == nil, "every place is taken")
            ration.giveBack()
            #expect(ration.take(now: now) == .zero)
            #expect(!ration.isUnused(now: now))
            for _ in 0..<bound.open { ration.giveBack() }
            #expect(!ration.isUnused(now: now) && ration.isUnused(now: now + .seconds(60)))
        }
    }

    @Test("Who is refused on one way has taken no place on the other, and says so with limitExceeded")
    func together() async throws {
        let rations = StreamRations()
        let device = StreamRations.Way.toDevice("laptop")
        let applications = (0..<3).map { _ in Identified() }
        let ways = applications.map { StreamRations.Way.fromApplication(ObjectIdentifier($0)) }
        for way in ways.prefix(2) {
            for _ in 0..<StreamRation.Bound.fromApplication.burst { try await rations.take([way, device]) }
        }
        // Each of the two has used its burst and the device's with it: the third waits for the device alone.
        let began = ContinuousClock.now
        try await rations.take([ways[2], device])
        #expect(ContinuousClock.now - began >= .milliseconds(50))
        let errors = await withTaskGroup(of: HandoffError.Code?.self) { group in
            for _ in 0..<40 {
                group.addTask {
                    do throws(HandoffError) {
                        try await rations.take([ways[0], device])
                        rations.giveBack([ways[0], device])
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(errors.contains(.limitExceeded) && errors.contains(nil))
        #expect(errors.allSatisfy { $0 == nil || $0 == .limitExceeded })
        #expect(rations.count == 4)
    }

    @Test("A wait that is cancelled gives its place back")
    func cancelled() async throws {
        let rations = StreamRations()
        let way = StreamRations.Way.toDevice("laptop")
        let bound = way.bound
        for _ in 0..<bound.burst { try await rations.take([way]) }
        for _ in 0..<bound.burst { rations.giveBack([way]) }
        let waiting = Task { try await rations.take([way]) }
        waiting.cancel()
        let error = await #expect(throws: HandoffError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
        #expect(rations.open(way) == 0)
    }

    @Test("A flood of warnings is one line a minute, with how many were left out")
    func warnings() {
        var warning = RepeatedWarning()
        let began = ContinuousClock.now
        #expect(warning.note(at: began) == 0)
        for second in 1..<60 { #expect(warning.note(at: began + .seconds(second)) == nil) }
        #expect(warning.note(at: began + RepeatedWarning.interval) == 59)
        #expect(warning.note(at: began + .seconds(61)) == nil)
    }
}

/// Something with an identity, as a connection has.
private final class Identified: Sendable {}
