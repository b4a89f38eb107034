// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Subprocess
import SystemPackage

/// The end of what a process writes to standard error.
///
/// `tail` keeps it, in a process of its own. A pipe to this process would break when this process ends, and the other
/// one, which goes on, would fail at its next write. Without a program `tail` nothing is kept.
final class ErrorOutput: Sendable {
    /// The most bytes that are kept. Default 2 KiB.
    private static let bound = 2 << 10
    /// How long the output is waited for after the process has ended: its children may keep it open. Default 500 ms.
    private static let patience = Duration.milliseconds(500)

    /// Where the process is to write to, open until ``closeWriter()``.
    let descriptor: FileDescriptor
    private let isClosed = Lock(false)
    private let output: AsyncStream<[UInt8]>

    /// Opens an output, and starts `tail` to read it.
    init(_ search: ExecutableSearch) throws(Errno) {
        let (output, kept) = AsyncStream<[UInt8]>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.output = output
        do {
            guard let tail = try? search.find("tail") else {
                descriptor = try FileDescriptor.open("/dev/null", .writeOnly, options: .closeOnExec)
                kept.finish()
                return
            }
            let ends = try FileDescriptor.pipe(options: .closeOnExec)
            descriptor = ends.writeEnd
            Task.detached {
                var options = PlatformOptions()
                options.createSession = true
                let result = try? await Subprocess.run(
                    .path(tail), arguments: ["-c", "\(Self.bound)"], platformOptions: options,
                    input: .fileDescriptor(ends.readEnd, closeAfterSpawningProcess: true),
                    output: .bytes(limit: Self.bound), error: .discarded)
                if let result { kept.yield(result.standardOutput) }
                kept.finish()
            }
        } catch {
            throw error as? Errno ?? .ioError
        }
    }

    deinit { closeWriter() }

    /// Closes this process's own end, which has to be done once the other process has it.
    func closeWriter() {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        if !wasClosed { try? descriptor.close() }
    }

    /// The last lines that were written; to be asked for once, after the process has ended.
    func lastLines() async -> [String] {
        let bytes = await withTaskGroup(of: [UInt8]?.self) { [output] group in
            group.addTask { await output.first { _ in true } }
            group.addTask {
                try? await Alarm.sleep(for: Self.patience)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        return Self.lastLines(of: String(decoding: bytes ?? [], as: UTF8.self))
    }

    /// The last three lines of a text that are not empty, at most 200 characters of each, without control characters.
    static func lastLines(of text: String) -> [String] {
        text.split(whereSeparator: \.isNewline)
            .map { line in
                let shown = line.unicodeScalars.filter { $0.properties.generalCategory != .control }
                return String(String.UnicodeScalarView(shown))
            }
            .filter { !$0.allSatisfy(\.isWhitespace) }
            .suffix(3).map { String($0.prefix(200)) }
    }
}
