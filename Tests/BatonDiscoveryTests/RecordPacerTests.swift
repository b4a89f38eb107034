import Testing

@testable import BatonDiscovery

@Suite struct RecordPacerTests {
    /// Lets a record change at each of `changes` (milliseconds) and returns what was told when.
    private func simulate(_ changes: [Int]) -> [(change: Int, time: Int)] {
        var pacer = RecordPacer()
        var told: [(Int, Int)] = []
        var latest = 0
        for millisecond in 0...(changes.max() ?? 0) + 1000 {
            for change in changes where change == millisecond {
                latest = change
                pacer.change()
            }
            if pacer.takeIfDue(now: .milliseconds(millisecond)) { told.append((latest, millisecond)) }
        }
        #expect(pacer.deadline() == nil && !pacer.isWaiting)
        return told
    }

    @Test func aChangeAfterQuietIsToldAtOnce() {
        let changes = [0, 100, 350, 5000]
        #expect(simulate(changes).map(\.time) == changes)
    }

    @Test func ofThoseThatFollowCloselyTheLatestIsTold() {
        let told = simulate([10, 20, 30, 40])
        #expect(told.map(\.time) == [10, 110] && told.map(\.change) == [10, 40])
    }

    @Test func aFloodIsToldTenTimesASecondAndItsLastRecordAsWell() {
        let told = simulate(Array(0..<5000))
        #expect(told.count == 51 && told.last?.change == 4999)
        #expect(zip(told, told.dropFirst()).allSatisfy { $1.time - $0.time == 100 })
    }
}
