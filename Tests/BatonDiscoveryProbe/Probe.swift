// SPDX-License-Identifier: Apache-2.0

import BatonDiscovery
import BatonEventLoop
import Glibc

/// One device's discovery as a program, so that tests can put it on a lab host.
///
/// It prints each event as one JSON object a line, with `time` in nanoseconds of the clock that all hosts of this
/// machine share. It reads commands from standard input: `publish HEX...`, `withdraw HEX...`, `rotate HEX...` (one
/// argument a TXT string), `keep INSTANCE`, `reject INSTANCE`, `queries`, `quit`. With `--verdict keep` or `--verdict
/// reject` it gives that verdict on every instance itself. The end of its input is `quit`.
@main
enum Probe {
    static func main() async throws {
        var configuration = DiscoveryConfiguration()
        var verdict = ""
        var arguments = CommandLine.arguments.dropFirst()
        while let option = arguments.popFirst(), let value = arguments.popFirst() {
            switch option {
            case "--verdict": verdict = value
            case "--rotation": configuration.rotationPeriod = .milliseconds(Int(value) ?? 0)
            case "--rediscovery": configuration.rediscoveryPeriod = .milliseconds(Int(value) ?? 0)
            default: break
            }
        }
        let discovery = ServiceDiscovery(
            configuration: configuration, loop: EventLoop(name: "probe"),
            executor: try BlockingExecutor(name: "discovery"))
        let (givenVerdict, events) = (verdict, discovery.events)
        let printing = Task {
            for await event in events {
                report(event)
                guard case .record(let instance, _, _) = event else { continue }
                if givenVerdict == "keep" { discovery.keep(instance) }
                if givenVerdict == "reject" { discovery.reject(instance) }
            }
        }
        await discovery.start()
        // A thread of its own: reading blocks.
        let commands = AsyncStream<[Substring]> { continuation in
            let thread = Reader {
                continuation.yield($0)
            } end: {
                continuation.finish()
            }
            thread.start()
        }
        for await words in commands {
            guard let command = words.first else { continue }
            let strings = words.dropFirst().map { bytes($0) }
            emit(#"{"event":"command","time":\#(MonotonicClock.nanoseconds()),"command":"\#(command)"}"#)
            switch command {
            case "publish": discovery.publish(txt: strings)
            case "withdraw": discovery.publish(txt: strings, as: .withdrawal)
            case "rotate": discovery.rotate(txt: strings)
            case "keep": discovery.keep(String(words[1]))
            case "reject": discovery.reject(String(words[1]))
            case "queries":
                let usage = await discovery.queryUsage
                emit(#"{"event":"queries","kept":\#(usage.kept),"probing":\#(usage.probing)}"#)
            default: break
            }
            if command == "quit" { break }
        }
        await discovery.stop()
        await printing.value
    }

    static func report(_ event: DiscoveryEvent) {
        let members =
            switch event {
            case .responder(.idle): #""event":"responder","state":"idle""#
            case .responder(.running): #""event":"responder","state":"running""#
            case .responder(.unavailable(let reason, let delay)):
                #""event":"responder","state":"unavailable","reason":"\#(reason)","#
                    + #""retryAfter":\#(delay.components.seconds)"#
            case .record(let instance, let interface, let txt):
                #""event":"record","instance":"\#(instance)","interface":\#(interface),"txt":"\#(hex(txt))""#
            case .removed(let instance): #""event":"removed","instance":"\#(instance)""#
            case .rotationDue: #""event":"rotationDue""#
            case .registered(let instance): #""event":"registered","instance":"\#(instance)""#
            }
        emit(#"{"time":\#(MonotonicClock.nanoseconds()),\#(members)}"#)
    }

    /// One line, at once: standard output is a pipe here, and `print` would keep it back.
    static func emit(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }

    static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    static func bytes(_ hex: some StringProtocol) -> [UInt8] {
        var rest = hex.utf8[...]
        var bytes: [UInt8] = []
        while rest.count >= 2 {
            bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}

/// Reads lines of standard input on a thread.
final class Reader: Sendable {
    private let line: @Sendable ([Substring]) -> Void
    private let end: @Sendable () -> Void

    init(line: @escaping @Sendable ([Substring]) -> Void, end: @escaping @Sendable () -> Void) {
        self.line = line
        self.end = end
    }

    func start() {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let reader = Unmanaged<Reader>.fromOpaque(context).takeRetainedValue()
                while let line = readLine() { reader.line(line.split(separator: " ")) }
                reader.end()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }
}
