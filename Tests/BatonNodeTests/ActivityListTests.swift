import BatonMessages
import FoundationEssentials
import SwiftProtobuf
import Testing

@testable import BatonNode

@Suite("What a device lists")
struct ActivityListTests {
    private func title(_ title: String) -> String? {
        WireActivitySummary.with {
            $0.id = Data(0..<16)
            $0.type = "org.example.note"
            $0.title = title
        }.bounded?.title
    }

    @Test("A title is cut between two characters, at the bound")
    func titles() {
        #expect(title("") == "")
        #expect(title(String(repeating: "x", count: 1024)) == String(repeating: "x", count: 1024))
        #expect(title(String(repeating: "x", count: 1025)) == String(repeating: "x", count: 1024))
        #expect(title(String(repeating: "ü", count: 600)) == String(repeating: "ü", count: 512))
        #expect(title("x" + String(repeating: "ü", count: 512)) == "x" + String(repeating: "ü", count: 511))
        #expect(title("x" + String(repeating: "\u{301}", count: 1000)) == "")
    }

    /// Each of these took seconds, on the loop that serves everything: cutting it from its end looks at all of it for
    /// every character.
    @Test("The longest title of the worst kind costs next to nothing", .timeLimit(.minutes(5)))
    func flags() {
        let flags = String(repeating: "\u{1F1E9}", count: 16_000)
        for _ in 0..<64 { #expect(title(flags) == String(repeating: "\u{1F1E9}", count: 256)) }
    }

    @Test("What is no activity is left out")
    func nothing() {
        #expect(WireActivitySummary().bounded == nil)
        #expect(WireActivitySummary.with { $0.id = Data(0..<16) }.bounded == nil)
        let long = WireActivitySummary.with {
            $0.id = Data(0..<16)
            $0.type = String(repeating: "t", count: 97)
        }
        #expect(long.bounded == nil)
    }
}
