// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization

/// The terminal as a screen that a program fills, and a keyboard. A process has one at a time.
package final class TerminalScreen: Sendable {
    /// An event of the terminal.
    package enum Event: Sendable {
        case key(Key)
        /// The screen has to be drawn again.
        case redraw
        /// The terminal has gone, or a signal asks the program to end.
        case quit
    }

    /// A line of the screen.
    package struct Line: Sendable, Hashable, ExpressibleByStringInterpolation {
        package enum Style: String, Sendable {
            case plain = "0"
            case bold = "1"
            case dim = "2"
            case reverse = "7"
        }

        let text: String
        let style: Style

        package init(_ text: String, _ style: Style = .plain) {
            self.text = text
            self.style = style
        }

        package init(stringLiteral text: String) { self.init(text) }
    }

    /// There is no terminal.
    package struct NoTerminal: Error, CustomStringConvertible {
        package let description = "this needs a terminal: run it in one"
    }

    /// The events, from the first key on, for one task. Events are dropped while 4,096 wait.
    package let events: AsyncStream<Event>
    nonisolated(unsafe) private let sources: [any DispatchSourceProtocol]  // reason: any thread may cancel a source
    private let isClosed = Mutex(false)

    /// Takes the terminal of this process.
    package init() throws(NoTerminal) {
        guard TerminalMode.enter() else { throw NoTerminal() }
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(4096))
        self.events = events
        let queue = DispatchQueue(label: "terminal")
        sources = [Self.keyboard(queue, continuation)] + Self.signals(queue, continuation)
        for source in sources { source.activate() }
    }

    deinit {
        close()
        for source in sources { source.cancel() }
    }

    /// Restores the terminal. Idempotent.
    package func close() {
        let isFirst = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
        if isFirst { TerminalMode.leave() }
    }

    /// Columns and rows, or those of a VT100 if the terminal does not tell.
    package var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Fills the screen with lines from the top on, cut to its width.
    ///
    /// - Parameter cursor: the place of the cursor; `nil` hides it.
    package func draw(_ lines: [Line], cursor: (column: Int, row: Int)?) {
        let (columns, rows) = size
        var output = "\u{1B}[?25l"
        for (row, line) in lines.prefix(rows).enumerated() {
            let text = ScreenText.fitting(line.text, columns: columns)
            output += "\u{1B}[\(row + 1);1H\u{1B}[\(line.style.rawValue)m\(text)\u{1B}[0m"
            if ScreenText.columns(of: text) < columns { output += "\u{1B}[K" }
        }
        if lines.count < rows { output += "\u{1B}[\(lines.count + 1);1H\u{1B}[J" }
        if let cursor { output += "\u{1B}[\(cursor.row + 1);\(min(cursor.column, columns - 1) + 1)H\u{1B}[?25h" }
        var rest = Array(output.utf8)[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            // If the terminal has gone, its keyboard ends as well and reports that.
            guard written > 0 || errno == EINTR else { return }
            rest = rest.dropFirst(max(0, written))
        }
    }

    private static func keyboard(
        _ queue: DispatchQueue, _ events: AsyncStream<Event>.Continuation
    ) -> any DispatchSourceProtocol {
        let source = DispatchSource.makeReadSource(fileDescriptor: STDIN_FILENO, queue: queue)
        source.setEventHandler {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            guard count > 0 else {
                if count < 0, errno == EINTR || errno == EAGAIN { return }
                source.cancel()
                events.yield(.quit)
                return
            }
            for key in Key.keys(in: buffer[..<count]) { events.yield(.key(key)) }
        }
        return source
    }

    /// A second request to end ends the process at once.
    private static func signals(
        _ queue: DispatchQueue, _ events: AsyncStream<Event>.Continuation
    ) -> [any DispatchSourceProtocol] {
        let isAsked = Mutex(false)
        var sources: [any DispatchSourceProtocol] = []
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            let source = DispatchSource.makeSignalSource(signal: signal, queue: queue)
            source.setEventHandler {
                let wasAsked = isAsked.withLock { isAsked in
                    defer { isAsked = true }
                    return isAsked
                }
                if wasAsked {
                    TerminalMode.leave()
                    _exit(128 + signal)
                }
                events.yield(.quit)
            }
            sources.append(source)
        }
        for signal in [SIGWINCH, SIGCONT] {
            let source = DispatchSource.makeSignalSource(signal: signal, queue: queue)
            source.setEventHandler { events.yield(.redraw) }
            sources.append(source)
        }
        return sources
    }
}
