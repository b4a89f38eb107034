// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import Glibc
import SystemPackage

/// The progress of transfers, on standard error. On a terminal each transfer has one line that is redrawn. Elsewhere
/// there is a plain line every few seconds.
actor ProgressLine {
    /// The time between two redraws on a terminal: 100 ms.
    static let redrawInterval = Duration.milliseconds(100)
    /// The time between two lines elsewhere: 5 s.
    static let plainInterval = Duration.seconds(5)
    /// Transfers that have a line of their own on a terminal: 4. If there are more, the last line says how many.
    static let lineBound = 4

    private let isTerminal: Bool
    private let write: @Sendable (String) -> Void
    private let width: @Sendable () -> Int
    private let now: @Sendable () -> Instant

    private var transfers: [(name: String, progress: TransferProgress, bottleneck: WireTransferBottleneck)] = []
    private var lastDrawn: Instant?
    /// The number of lines on the terminal.
    private var drawnLines = 0

    init(
        isTerminal: Bool = Terminal.isSmart(.standardError),
        width: @escaping @Sendable () -> Int = { Terminal.width(of: .standardError) },
        now: @escaping @Sendable () -> Instant = { Instant(nanoseconds: MonotonicClock.nanoseconds()) },
        write: @escaping @Sendable (String) -> Void = { _ = try? FileDescriptor.standardError.writeAll($0.utf8) }
    ) {
        self.isTerminal = isTerminal
        self.width = width
        self.now = now
        self.write = write
    }

    /// Updates a transfer, and redraws when that is due.
    ///
    /// - Parameters:
    ///   - name: identifies the transfer and begins its line; safe to show.
    ///   - bottleneck: what the transfer waits for.
    func update(
        _ name: String, bytes: UInt64, total: UInt64, bottleneck: WireTransferBottleneck = .unknown
    ) {
        let time = now()
        if let index = transfers.firstIndex(where: { $0.name == name && $0.progress.total == total }) {
            transfers[index].progress.update(bytes: bytes, now: time)
            transfers[index].bottleneck = bottleneck
        } else {
            transfers.removeAll { $0.name == name }
            transfers.append((name, TransferProgress(total: total, bytes: bytes, now: time), bottleneck))
        }
        let interval = isTerminal ? Self.redrawInterval : Self.plainInterval
        guard let last = lastDrawn else {
            lastDrawn = time
            // A first plain line would only say that the transfer began.
            if isTerminal { draw(time) }
            return
        }
        guard time >= last + interval else { return }
        lastDrawn = time
        draw(time)
    }

    /// Removes the line of a transfer that is over.
    func remove(_ name: String) {
        transfers.removeAll { $0.name == name }
        if transfers.isEmpty {
            clear()
            lastDrawn = nil
        } else if drawnLines > 0 {
            draw(now())
        }
    }

    /// Removes all lines.
    func removeAll() {
        transfers = []
        clear()
        lastDrawn = nil
    }

    /// Prints a message on a line of its own, above the progress.
    func say(_ text: String) {
        clear()
        write(TextWrap.lines(text, width: isTerminal ? width() : .max).joined(separator: "\n") + "\n")
        if isTerminal, !transfers.isEmpty { draw(now()) }
    }

    /// Clears the lines on the terminal.
    func clear() {
        guard drawnLines > 0 else { return }
        write(toFirstLine + (drawnLines > 1 ? "\u{1B}[J" : "\u{1B}[K"))
        drawnLines = 0
    }

    /// The control sequence that moves the cursor to the first line (ECMA-48: CUU).
    private var toFirstLine: String { drawnLines > 1 ? "\r\u{1B}[\(drawnLines - 1)A" : "\r" }

    private func draw(_ time: Instant) {
        if isTerminal {
            let lines = lines(time, width: width())
            // If there were more lines before, clear them too.
            let end = drawnLines > lines.count ? "\u{1B}[J" : "\u{1B}[K"
            write(toFirstLine + lines.joined(separator: "\u{1B}[K\n") + end)
            drawnLines = lines.count
        } else {
            for transfer in transfers {
                let facts = Self.facts(transfer.progress, transfer.bottleneck, now: time)
                write("\(transfer.name): \(Self.percent(transfer.progress)), \(facts)\n")
            }
        }
    }

    private func lines(_ time: Instant, width: Int) -> [String] {
        // Leave the last column free: writing there moves the cursor of some terminals to the next line.
        let room = max(width - 1, 1)
        let ownLines = transfers.count > Self.lineBound ? Self.lineBound - 1 : transfers.count
        let shown = transfers.prefix(ownLines)
        let nameWidth = shown.map { DisplayWidth.of($0.name) }.max() ?? 0
        var lines = shown.map {
            let padding = String(repeating: " ", count: nameWidth - DisplayWidth.of($0.name))
            return Self.line($0.name + padding, $0.progress, $0.bottleneck, now: time, room: room)
        }
        if transfers.count > ownLines {
            lines.append(DisplayWidth.clip("and \(transfers.count - ownLines) more", to: room))
        }
        return lines
    }

    /// One line: name, bar, percent, bytes, rate, time left and bottleneck. If it is too long, the bottleneck is left
    /// out first, then the bar, then the name.
    static func line(
        _ name: String, _ progress: TransferProgress, _ bottleneck: WireTransferBottleneck = .unknown, now: Instant,
        room: Int
    ) -> String {
        var facts = "\(percent(progress))  \(Self.facts(progress, bottleneck, now: now))"
        if room - DisplayWidth.of(facts) < 16 {
            facts = "\(percent(progress))  \(Self.facts(progress, .unknown, now: now))"
        }
        let left = room - DisplayWidth.of(facts) - 2
        guard left >= 8 else { return DisplayWidth.clip(facts, to: room) }
        let shownName = DisplayWidth.clip(name, to: max(left * 2 / 3, 8))
        let barRoom = min(left - DisplayWidth.of(shownName) - 4, 30)
        guard barRoom >= 5 else { return shownName + "  " + facts }
        let filled = Int(progress.fraction * Double(barRoom))
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: barRoom - filled)
        return shownName + "  " + bar + "  " + facts
    }

    /// Bytes, rate, time left and bottleneck of a transfer.
    private static func facts(
        _ progress: TransferProgress, _ bottleneck: WireTransferBottleneck, now: Instant
    ) -> String {
        guard !progress.isComplete else { return "\(HumanUnits.bytes(progress.total)), writing to the disk" }
        let limit = bottleneck == .unknown ? "" : ", \(bottleneck.phrase)"
        return progress.summary(now: now) + limit
    }

    /// The progress in percent, at most 99: a document is complete only when it is verified and in place.
    private static func percent(_ progress: TransferProgress) -> String {
        "\(min(99, Int(progress.fraction * 100)))%"
    }
}

/// The progress of a transfer in `--json`: the same facts as on a terminal.
struct ProgressMembers {
    private var progress: TransferProgress?

    /// The members of one event.
    ///
    /// `bytes` is always less than `total`: only `continued` says that the document is verified and in place.
    mutating func members(_ event: WireProgressReport, now: Instant) -> [JSONValue.Member] {
        var current: TransferProgress
        if let progress, progress.total == event.total {
            current = progress
            current.update(bytes: event.bytes, now: now)
        } else {
            // A new transfer, or a version of the document with another size.
            current = TransferProgress(total: event.total, bytes: event.bytes, now: now)
        }
        progress = current
        let left = current.isComplete ? nil : current.timeLeft(now: now)
        return [
            .count("bytes", min(event.bytes, max(event.total, 1) - 1)), .count("total", event.total),
            .count("rate", current.rate(now: now).map { UInt64(min($0, 1e18)) }),
            .count("secondsLeft", left?.components.seconds),
            .text("bottleneck", event.bottleneck.text),
        ]
    }
}

extension WireTransferBottleneck {
    /// What a transfer waits for, for the progress line.
    var phrase: String {
        switch self {
        case .link: "limited by the network"
        case .diskHere: "limited by this disk"
        case .diskThere: "limited by the other disk"
        case .processorHere: "limited by this CPU"
        case .processorThere: "limited by the other CPU"
        case .unknown, .UNRECOGNIZED: "limit unknown"
        }
    }

    /// The name of the bottleneck for JSON.
    var text: String {
        switch self {
        case .link: "link"
        case .diskHere: "disk here"
        case .diskThere: "disk there"
        case .processorHere: "CPU here"
        case .processorThere: "CPU there"
        case .unknown, .UNRECOGNIZED: "unknown"
        }
    }
}
