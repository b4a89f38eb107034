// SPDX-License-Identifier: Apache-2.0

/// Rows in aligned columns that fit a width. The widest column that may shrink does so first.
struct Table {
    struct Column {
        let title: String
        /// The smallest width; `nil` if the column never shrinks.
        let minimum: Int?
        let alignsRight: Bool

        init(_ title: String, minimum: Int? = nil, alignsRight: Bool = false) {
            self.title = title
            self.minimum = minimum
            self.alignsRight = alignsRight
        }
    }

    /// The space between two columns.
    private static let gap = 2

    let columns: [Column]
    var rows: [[String]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// The lines of the table, with the titles first. No line is wider than `width`: a line that wraps makes a table
    /// unreadable. Columns shrink to their minimum, and then the line is cut.
    func lines(width: Int) -> [String] {
        let widths = columnWidths(fitting: width)
        return ([columns.map(\.title)] + rows).map { row in
            var line = ""
            for (index, column) in columns.enumerated() {
                let cell = DisplayWidth.clip(row[index], to: widths[index])
                let padding = String(repeating: " ", count: widths[index] - DisplayWidth.of(cell))
                line += column.alignsRight ? padding + cell : cell + padding
                if index < columns.count - 1 { line += String(repeating: " ", count: Self.gap) }
            }
            while line.last == " " { line.removeLast() }
            return DisplayWidth.clip(line, to: width)
        }
    }

    private func columnWidths(fitting width: Int) -> [Int] {
        var widths = columns.indices.map { index in
            ([columns[index].title] + rows.map { $0[index] }).map { DisplayWidth.of($0) }.max() ?? 0
        }
        var excess = widths.reduce(Self.gap * (columns.count - 1), +) - width
        while excess > 0 {
            let shrinkable = columns.indices.filter { widths[$0] > max(columns[$0].minimum ?? .max, 1) }
            guard let widest = shrinkable.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        return widths
    }
}
