// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonFoundation
import BatonTestSupport
import Foundation

/// Offers an activity whose streams are served by code that blocks.
final class Echoing: UserActivityDelegate {
    private let application: Application
    private let activity: UserActivity

    init() throws {
        application = try Application(.init(identifier: "org.example.echoing", name: "Echoing", team: "EXAMPLE"))
        activity = try UserActivity(activityType: Probe.type, application: application)
    }

    func run() async throws {
        activity.delegate = self
        activity.title = "Echo"
        activity.supportsContinuationStreams = true
        activity.becomeCurrent()
        // It is offered here, and was continued nowhere.
        await Asking.open(activity, "offered")
        await Probe.endOfInput()
        await application.close()
    }

    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
    ) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                Self.serve(ContinuationInputStream(inputStream), ContinuationOutputStream(outputStream))
                continuation.resume()
            }
        }
    }

    /// Gives nothing back before the other side has said all.
    private static func serve(_ input: InputStream, _ output: OutputStream) {
        input.open()
        output.open()
        let bytes = input.readToEnd()
        Probe.say("served \(bytes.count) \(output.writeAll(bytes) && input.streamError == nil)")
        output.close()
        input.close()
    }
}

/// Continues it.
final class Asking: ApplicationDelegate {
    private let application: Application
    private let sent: [UInt8]

    init(seed: UInt64, count: Int) throws {
        application = try Application(
            .init(
                identifier: "org.example.asking", name: "Asking", team: "EXAMPLE",
                continues: [try ContinuedActivityType(Probe.type)]))
        var generator = SeededGenerator(seed: seed)
        sent = generator.bytes(count)
    }

    func run() async throws {
        application.delegate = self
        application.start()
        for await state in application.nodeState where state == .connected { break }
        Probe.say("connected")
        await Probe.endOfInput()
        await application.close()
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        Task {
            if let streams = await Self.open(activity, "continued") {
                let echoed = await withCheckedContinuation { continuation in
                    Thread.detachNewThread { [sent] in
                        let (input, output) = (
                            ContinuationInputStream(streams.input), ContinuationOutputStream(streams.output)
                        )
                        continuation.resume(returning: Self.ask(sent, input, output))
                    }
                }
                Probe.say("echoed \(echoed.count) \(echoed == sent)")
            }
            activity.invalidate()
            await Self.open(activity, "let go")
        }
        return true
    }

    /// Says all, ends its own direction, and only then hears.
    private static func ask(_ bytes: [UInt8], _ input: InputStream, _ output: OutputStream) -> [UInt8] {
        input.open()
        output.open()
        let isSaid = output.writeAll(bytes)
        output.close()
        defer { input.close() }
        return isSaid ? input.readToEnd() : []
    }

    /// Streams of an activity; says why there are none.
    @discardableResult
    static func open(
        _ activity: UserActivity, _ what: String
    ) async -> (input: ContinuationInput, output: ContinuationOutput)? {
        do {
            let streams = try await activity.continuationStreams()
            Probe.say("\(what): streams")
            return streams
        } catch {
            Probe.say("\(what): \(error.code.rawValue)")
            return nil
        }
    }
}

extension InputStream {
    fileprivate func readToEnd() -> [UInt8] {
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 10_000))
        while case let count = read(&buffer, maxLength: buffer.count), count > 0 { bytes += buffer[..<count] }
        return bytes
    }
}

extension OutputStream {
    /// - Returns: whether all were taken.
    fileprivate func writeAll(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(50_000))
            guard write(part, maxLength: part.count) == part.count else { return false }
            rest = rest.dropFirst(part.count)
        }
        return true
    }
}
