// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import BatonTransport
import Glibc
import Subprocess
import SystemPackage

/// One process with a continuation stream as its standard input and output.
///
/// The process leads a process group of its own, so that its children end with it. Its standard error is the one of
/// this command. The output ends, with END or with the exit status, only when the process has ended: before that nobody
/// knows whether it is whole.
struct ServedProcess {
    let command: ServedCommand
    let stream: BatonTransport.Stream

    /// The time between SIGTERM and SIGKILL: 1 s.
    private static let grace = Duration.seconds(1)
    /// How long the other side may keep sending after the process has ended and its output has left: 2 s.
    private static let lingering = Duration.seconds(2)

    /// - Returns: how it failed, as the end of a sentence that begins with the command; nil if it succeeded.
    func run() async -> String? {
        var options = PlatformOptions()
        options.processGroupID = 0
        let teardown = [TeardownStep.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: Self.grace)]
        options.teardownSequence = teardown
        let stream = stream
        do {
            let hasFolder = command.executable.bytes.contains(UInt8(ascii: "/"))
            let result = try await Subprocess.run(
                hasFolder ? .path(command.executable) : .name(command.executable.string),
                arguments: Arguments(command.arguments.map { $0 + [0] }), platformOptions: options, input: .inputWriter,
                output: .sequence, error: .currentStandardError
            ) { execution in
                try await stream.respond(.continuationStream(WireContinuationStreamResponse()))
                let isWhole = await Self.join(execution, stream)
                if !isWhole { await execution.teardown(using: teardown) }
                return isWhole
            }
            guard result.closureResult else { return Self.aborted }
            let (code, failure) =
                switch result.terminationStatus {
                case .exited(let code): (code, "ended with status \(code)")
                case .signaled(let signal): (128 + signal, "was ended by signal \(signal)")
                }
            let status = UInt8(truncatingIfNeeded: code)
            guard status == 0 else {
                await stream.fail(status: status)
                return failure
            }
            await stream.finish()
            Task { await Self.discardInput(of: stream) }
            return nil
        } catch let error as SubprocessError {
            await stream.fail(HandoffError(.internal, "the command behind the stream could not be started"))
            return "cannot be started: \(error)"
        } catch {
            await stream.reset(.cancelled)
            return Self.aborted
        }
    }

    private static let aborted = "was ended, because the stream was aborted"

    private enum Step: Sendable {
        case inputEnded
        case outputEnded
        case exited
        case aborted
    }

    /// - Returns: `true` if the process has ended and all of its output is queued.
    private static func join(
        _ execution: Execution<CustomWriteInput, SequenceOutput, FileDescriptorOutput>, _ stream: BatonTransport.Stream
    ) async -> Bool {
        let process = execution.processIdentifier
        return await withTaskGroup(of: Step.self) { group in
            group.addTask { await feed(execution, from: stream) }
            group.addTask { await collect(execution, into: stream) }
            defer { group.cancelAll() }
            for await step in group {
                switch step {
                case .inputEnded:
                    group.addTask {
                        await stream.untilClosedOrCancelled()
                        return .aborted
                    }
                case .outputEnded:
                    // A process may close its output and keep reading its input.
                    group.addTask { await waitForExit(of: process, on: stream.connection.loop) }
                case .exited:
                    return true
                case .aborted:
                    await stream.reset(.cancelled)
                    return false
                }
                if Task.isCancelled {
                    await stream.reset(.cancelled)
                    return false
                }
            }
            return false
        }
    }

    /// Passes the stream to standard input. END closes the input. Bytes that the process does not read are discarded.
    private static func feed(
        _ execution: Execution<CustomWriteInput, SequenceOutput, FileDescriptorOutput>,
        from stream: BatonTransport.Stream
    ) async -> Step {
        let writer = execution.standardInputWriter
        var reads = true
        do {
            var spent: Buffer?
            while let buffer = try await stream.read(reusing: spent) {
                if reads {
                    do {
                        _ = try await writer.write(Array(buffer.bytes))
                    } catch {
                        reads = false
                    }
                }
                spent = buffer
            }
        } catch {
            return .aborted
        }
        try? await writer.finish()
        return .inputEnded
    }

    private static func collect(
        _ execution: Execution<CustomWriteInput, SequenceOutput, FileDescriptorOutput>,
        into stream: BatonTransport.Stream
    ) async -> Step {
        do {
            for try await chunk in execution.standardOutput {
                try await stream.write(chunk.withUnsafeBytes { Buffer(copying: $0) })
            }
            return .outputEnded
        } catch is TransportError {
            return .aborted
        } catch {
            // Only the end of the process breaks the pipe. All that it wrote has been sent.
            return .outputEnded
        }
    }

    /// Waits until the process has ended, without reaping it: Subprocess does that. A process descriptor becomes
    /// readable then (`pidfd_open(2)`).
    private static func waitForExit(of process: ProcessIdentifier, on loop: EventLoop) async -> Step {
        let descriptor = fcntl(process.processDescriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return .aborted }
        let exit = FirstResult<Void>()
        do {
            let source = try ReadinessSource(
                reading: OwnedDescriptor(takingOwnershipOf: descriptor), on: loop
            ) { exit.decide(()) }
            try source.resume()
            defer { source.cancel() }
            await exit.value(ifCancelled: ())
        } catch {
            return .aborted
        }
        return Task.isCancelled ? .aborted : .exited
    }

    /// Discards what the other side still sends, and resets the stream if it does not stop. The output comes first: a
    /// slow link may take longer than ``lingering`` for what is queued.
    private static func discardInput(of stream: BatonTransport.Stream) async {
        let patience = Task {
            try await stream.drained()
            try await Task.sleep(for: lingering)
            await stream.reset(.noError)
        }
        defer { patience.cancel() }
        var spent: Buffer?
        while let buffer = try? await stream.read(reusing: spent) { spent = buffer }
    }
}

/// The command of `--serve`: a program and its arguments. A shell reads it only if `--shell` asks for one.
struct ServedCommand: Sendable, Equatable {
    let executable: FilePath
    let arguments: [[UInt8]]

    init(_ line: CommandArgument, throughShell: Bool) throws(CommandLineSplitter.Problem) {
        // A line of spaces is empty for a shell as well.
        let words = throughShell && !line.isBlank ? nil : try line.words()
        executable = words?[0].path ?? "/bin/sh"
        arguments = words?.dropFirst().map(\.bytes) ?? [Array("-c".utf8), line.bytes]
    }
}

/// Runs a command for each continuation stream: at most ``bound`` at once, and at most half of them for one device.
actor StreamServer {
    /// Commands at once: 16. Each is a process with two pipes and at most 4 MiB of queued output. A further one is
    /// refused.
    static let bound = 16
    /// Commands at once for one device: 8, so that one device cannot occupy all places.
    static let boundOfDevice = bound / 2

    private let command: ServedCommand
    /// The number of running commands of each device, by its identifier. A device can have any name.
    private var running: [String: Int] = [:]

    /// From here on the process ignores SIGPIPE: writing to a command that does not read fails instead.
    init(command: ServedCommand) {
        signal(SIGPIPE, SIG_IGN)
        self.command = command
    }

    /// Serves one stream until its command has ended.
    ///
    /// - Parameters:
    ///   - name: the name of the device.
    ///   - device: the identifier of the device.
    ///   - note: receives a sentence if the command fails.
    /// - Returns: whether the command succeeded.
    func serve(
        _ stream: BatonTransport.Stream, from name: String, identified device: String,
        note: @Sendable (String) async -> Void
    ) async -> Bool {
        let shown = SafeText.escaped(name)
        if let many = full(for: device) {
            let refusal = "\(many) commands for streams are running there already: try later"
            await stream.fail(HandoffError(.limitExceeded, refusal))
            await note("a stream from \(shown) was refused: \(many) commands are running already")
            return false
        }
        running[device, default: 0] += 1
        defer {
            running[device]? -= 1
            if running[device] == 0 { running[device] = nil }
        }
        guard let failure = await ServedProcess(command: command, stream: stream).run() else { return true }
        await note("\(command.executable.shown) (for \(shown)) \(failure)")
        return false
    }

    /// The number of running commands if the device may not start another one; nil if it may.
    private func full(for device: String) -> Int? {
        let all = running.values.reduce(0, +)
        if all >= Self.bound { return all }
        let own = running[device] ?? 0
        return own >= Self.boundOfDevice ? own : nil
    }
}
