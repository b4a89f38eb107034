import BatonTestSupport
import Foundation

/// An application of the library as a program, for what JSON lines do not say: responders, objects that are restored, and
/// user info that no JSON carries bit for bit. Each role tells what happens in lines, and ends with its standard input.
///
/// - `library-probe share`: offers an activity that two responders and the application's delegate put their state into.
/// - `library-probe restore TARGET...`: gives a window for each target to the restoration handler.
/// - `library-probe send SEED`: each device that takes its activity over gets the next random user info.
/// - `library-probe receive SEED COUNT`: takes it over so often, or for 40 s, and compares.
@main
enum Probe {
    static let type = "org.example.note"

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "share": try await Sharing().run()
        case "restore": try await Restoring(targets: Array(arguments.dropFirst())).run()
        case "send": try await Sending(seed: number(arguments, 1)).run()
        case "receive": try await Receiving(seed: number(arguments, 1)).run(count: Int(number(arguments, 2)))
        default: say("share, restore, send or receive")
        }
    }

    static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    /// A thread of its own: reading blocks.
    static func endOfInput() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                while readLine() != nil {}
                continuation.resume()
            }
        }
    }

    private static func number(_ arguments: [String], _ index: Int) -> UInt64 {
        arguments.indices.contains(index) ? UInt64(arguments[index]) ?? 0 : 0
    }
}
