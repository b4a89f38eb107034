import BatonProtocol
import Testing

@testable import BatonNode

@Suite("Records that are tried with all keys")
struct WideOpeningsTests {
    private let start = Instant(nanoseconds: 5_000_000_000)

    @Test("One a second under each name")
    func ofOneName() {
        var openings = WideOpenings()
        func admits(_ name: String, after time: Duration) -> Bool { openings.admit(name, at: start + time) }
        #expect(admits("a", after: .zero))
        #expect(!admits("a", after: .zero))
        #expect(admits("b", after: .milliseconds(500)))
        #expect(!admits("a", after: .milliseconds(999)))
        #expect(admits("a", after: .seconds(1)))
        // What was refused counts for nothing.
        #expect(!admits("b", after: .milliseconds(1499)))
        #expect(admits("b", after: .milliseconds(1500)))
    }

    @Test("Twenty a second in all")
    func ofAll() {
        #expect(WideOpenings.bound == 20)
        var openings = WideOpenings()
        func admits(_ name: String, after time: Duration) -> Bool { openings.admit(name, at: start + time) }
        for number in 0..<WideOpenings.bound {
            #expect(admits("\(number)", after: .milliseconds(number)))
        }
        #expect(!admits("late", after: .milliseconds(999)))
        // Each makes room for one.
        #expect(admits("late", after: .seconds(1)))
        #expect(!admits("later", after: .seconds(1)))
        #expect(admits("later", after: .milliseconds(1001)))
        var admitted = 0
        for moment in 0..<10_000 where admits("\(moment)", after: .seconds(10) + .milliseconds(moment)) {
            admitted += 1
        }
        #expect(admitted == 10 * WideOpenings.bound)
    }
}
