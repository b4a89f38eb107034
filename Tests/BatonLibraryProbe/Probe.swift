// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation

/// An application of the library as a program, for tests beyond JSON lines: responders, restored objects, and user info
/// that no JSON carries bit for bit. Each role tells what happens in lines, and ends with its standard input.
///
/// - `library-probe share`: offers an activity that two responders and the application's delegate put their state into.
///   Lines `resign`, `current` and `leave` (a responder goes) are done.
/// - `library-probe restore TARGET...`: gives a window for each target to the restoration handler.
/// - `library-probe expire`: offers an activity, which at a line `brief` expires 2 s later and at `more` has
///   all time again. The library looks at its clock so late.
/// - `library-probe send SEED`: each device that takes its activity over gets the next random user info.
/// - `library-probe receive SEED COUNT`: takes it over so often, and compares.
/// - `library-probe echo`: offers an activity whose streams give back all that came, once its end has.
/// - `library-probe ask SEED COUNT`: continues one, and has so many bytes echoed. Both by Foundation's blocking
///   streams.
@main
enum Probe {
    static let type = "org.example.note"

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "share": try await Sharing().run()
        case "restore": try await Restoring(targets: Array(arguments.dropFirst())).run()
        case "expire": try await Expiring().run()
        case "send": try await Sending(seed: number(arguments, 1)).run()
        case "receive": try await Receiving(seed: number(arguments, 1)).run(count: Int(number(arguments, 2)))
        case "echo": try await Echoing().run()
        case "ask": try await Asking(seed: number(arguments, 1), count: Int(number(arguments, 2))).run()
        default: say("share, restore, expire, send, receive, echo or ask")
        }
    }

    static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    /// The lines of standard input, read on a thread of its own: reading blocks.
    static func commands() -> AsyncStream<String> {
        let (lines, line) = AsyncStream<String>.makeStream()
        Thread.detachNewThread {
            while let next = readLine() { line.yield(next) }
            line.finish()
        }
        return lines
    }

    static func endOfInput() async {
        for await _ in commands() {}
    }

    private static func number(_ arguments: [String], _ index: Int) -> UInt64 {
        arguments.indices.contains(index) ? UInt64(arguments[index]) ?? 0 : 0
    }
}
