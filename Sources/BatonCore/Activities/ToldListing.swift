// SPDX-License-Identifier: Apache-2.0

/// A line of a listing: an activity of another device.
package protocol ListedLine: Sendable {
    associatedtype Key: Hashable

    /// Tells it from all other lines.
    var key: Key { get }

    /// Whether a watcher that knows the other line of this key need not be told of this one.
    func isTold(by other: Self) -> Bool
}

/// The listing as a watcher knows it: a value.
///
/// A watcher is told differences, and never a new list.
package struct ToldListing<Line: ListedLine>: Sendable {
    package enum Change: Sendable {
        case removed(Line)
        case added(Line)
        case updated(Line)
    }

    private var lines: [Line]

    /// - Parameter lines: what was told at the start.
    package init(_ lines: [Line] = []) {
        self.lines = lines
    }

    /// Takes over what is listed now, and returns what to tell: first what has gone, and then what came.
    package mutating func change(to present: [Line]) -> [Change] {
        defer { lines = present }
        let known = Dictionary(lines.map { ($0.key, $0) }) { first, _ in first }
        let keys = Set(present.map(\.key))
        return lines.filter { !keys.contains($0.key) }.map { .removed($0) }
            + present.filter { known[$0.key] == nil }.map { .added($0) }
            + present.filter { line in known[line.key].map { !line.isTold(by: $0) } ?? false }.map { .updated($0) }
    }
}
