// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonDocuments
import BatonEventLoop
import BatonMessages
import BatonProtocol
import Glibc
import SystemPackage

/// Prints the events of a command: each as a line of JSON, or as a sentence on standard error, with the progress of
/// transfers below. On a terminal each transfer has one line that is redrawn. Elsewhere there is a plain line every few
/// seconds.
actor EventOutput {
    /// The time between two redraws on a terminal: 100 ms.
    static let redrawInterval = Duration.milliseconds(100)
    /// The time between two lines elsewhere: 5 s.
    static let plainInterval = Duration.seconds(5)
    /// Transfers that have a line of their own on a terminal: 4. If there are more, the last line says how many.
    static let lineBound = 4
    /// The most transfers: 128, as many as a node has claims. If there are more, the oldest is forgotten.
    static let bound = 128

    nonisolated let isJSON: Bool
    /// Whether standard output carries something else, so that JSON goes to standard error.
    private let isOutputTaken: Bool
    private let isTerminal: Bool
    private let write: @Sendable (String) -> Void
    private let width: @Sendable () -> Int
    private let now: @Sendable () -> Instant

    private struct Transfer {
        /// The number of the claim. Several devices may have one name, and one device may accept an offer twice.
        let claim: UInt64
        /// Begins the line; safe to show, and different from the name of every other transfer.
        let name: String
        var progress: TransferProgress?
        var bottleneck = WireTransferBottleneck.unknown
    }

    private var transfers: [Transfer] = []
    private var lastDrawn: Instant?
    private var drawnLines = 0

    init(
        isJSON: Bool, isOutputTaken: Bool = false, isTerminal: Bool = Terminal.isSmart(.standardError),
        width: @escaping @Sendable () -> Int = { Terminal.width(of: .standardError) },
        now: @escaping @Sendable () -> Instant = { Instant(nanoseconds: MonotonicClock.nanoseconds()) },
        write: @escaping @Sendable (String) -> Void = { _ = try? FileDescriptor.standardError.writeAll($0.utf8) }
    ) {
        self.isJSON = isJSON
        self.isOutputTaken = isOutputTaken
        self.isTerminal = isTerminal
        self.width = width
        self.now = now
        self.write = write
    }

    // MARK: Events

    /// Prints an event as JSON, or for people as a sentence if it has one.
    func tell(_ event: String, _ members: [JSONMember] = [], _ sentence: String? = nil) throws {
        guard isJSON else { return sentence.map(say) ?? () }
        let line = EventLine.text(event, members)
        if isOutputTaken { write(line + "\n") } else { try Output.line(line) }
    }

    /// - Parameter trouble: what the responder of this machine does, in the node's words; nil: it is back.
    func responder(_ trouble: String?) throws {
        let members: [JSONMember] = trouble.map { [.text("responder", $0)] } ?? []
        try tell(trouble == nil ? "announced" : "unannounced", members, ResponderWatch.sentence(trouble))
    }

    /// Prints how far a transfer is. For people it redraws when that is due.
    ///
    /// - Parameters:
    ///   - name: begins the line.
    ///   - isShown: whether people see it here.
    func progressed(
        _ report: WireProgressReport, of name: String, claim: UInt64 = 0, isShown: Bool = true,
        _ members: [JSONMember] = []
    ) throws {
        let time = now()
        let index = transfer(claim, name)
        if transfers[index].progress?.total == report.total {
            transfers[index].progress?.update(bytes: report.bytes, now: time)
        } else {
            // A new transfer, or a version of the document with another size.
            transfers[index].progress = TransferProgress(total: report.total, bytes: report.bytes, now: time)
        }
        transfers[index].bottleneck = report.bottleneck
        if isJSON {
            try tell("progress", members + Self.members(report, transfers[index].progress, now: time))
        } else if isShown {
            drawIfDue(time)
        }
    }

    /// `bytes` is always less than `total`: only `continued` says that the document is verified and in place.
    private static func members(
        _ report: WireProgressReport, _ progress: TransferProgress?, now: Instant
    ) -> [JSONMember] {
        let left = progress?.isComplete == false ? progress?.timeLeft(now: now) : nil
        return [
            .count("bytes", min(report.bytes, max(report.total, 1) - 1)), .count("total", report.total),
            .count("rate", progress?.rate(now: now).map { UInt64(min($0, 1e18)) }),
            .count("secondsLeft", left?.components.seconds), .text("bottleneck", report.bottleneck.text),
        ]
    }

    /// The name of a transfer until it ends: the device's name, or “ubuntu (2)” if another transfer has that name.
    func name(of claim: UInt64, by device: String) -> String { transfers[transfer(claim, device)].name }

    /// The index of a transfer, which begins if it is new.
    private func transfer(_ claim: UInt64, _ device: String) -> Int {
        if let index = transfers.firstIndex(where: { $0.claim == claim }) { return index }
        var (name, number) = (device, 1)
        while transfers.contains(where: { $0.name == name }) {
            number += 1
            name = "\(device) (\(number))"
        }
        if transfers.count == Self.bound { transfers.removeFirst() }
        transfers.append(Transfer(claim: claim, name: name))
        return transfers.count - 1
    }

    /// Removes the line of a transfer that stopped for a while. Its name stays.
    func pause(_ claim: UInt64) {
        for index in transfers.indices where transfers[index].claim == claim { transfers[index].progress = nil }
        redraw()
    }

    /// Removes a transfer that is over. Its name is free for another one.
    func end(_ claim: UInt64) {
        transfers.removeAll { $0.claim == claim }
        redraw()
    }

    func removeAll() {
        transfers = []
        redraw()
    }

    /// Prints a message on a line of its own, above the progress.
    func say(_ text: String) {
        clear()
        write(TextWrap.lines(text, width: isTerminal ? width() : .max).joined(separator: "\n") + "\n")
        if isTerminal, !shown.isEmpty { draw(now()) }
    }

    // MARK: Lines

    private var shown: [(name: String, progress: TransferProgress, bottleneck: WireTransferBottleneck)] {
        transfers.compactMap { transfer in transfer.progress.map { (transfer.name, $0, transfer.bottleneck) } }
    }

    private func drawIfDue(_ time: Instant) {
        guard let last = lastDrawn else {
            lastDrawn = time
            // A first plain line would only say that the transfer began.
            if isTerminal { draw(time) }
            return
        }
        guard time >= last + (isTerminal ? Self.redrawInterval : Self.plainInterval) else { return }
        lastDrawn = time
        draw(time)
    }

    private func redraw() {
        if shown.isEmpty {
            clear()
            lastDrawn = nil
        } else if drawnLines > 0 {
            draw(now())
        }
    }

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
            for transfer in shown {
                let facts = Self.facts(transfer.progress, transfer.bottleneck, now: time)
                write("\(transfer.name): \(Self.percent(transfer.progress)), \(facts)\n")
            }
        }
    }

    private func lines(_ time: Instant, width: Int) -> [String] {
        // Leave the last column free: writing there moves the cursor of some terminals to the next line.
        let room = max(width - 1, 1)
        let all = shown
        let ownLines = all.count > Self.lineBound ? Self.lineBound - 1 : all.count
        let nameWidth = all.prefix(ownLines).map { DisplayWidth.of($0.name) }.max() ?? 0
        var lines = all.prefix(ownLines).map {
            let padding = String(repeating: " ", count: nameWidth - DisplayWidth.of($0.name))
            return Self.line($0.name + padding, $0.progress, $0.bottleneck, now: time, room: room)
        }
        if all.count > ownLines { lines.append(DisplayWidth.clip("and \(all.count - ownLines) more", to: room)) }
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

extension WireTransferBottleneck {
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
