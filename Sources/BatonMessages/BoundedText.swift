// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The longest beginning that fits into so many bytes and ends between two characters. From the front: to find the
    /// last character of a row of flags, all of them have to be looked at.
    package func beginning(bytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = startIndex
        while true {
            let next = index(after: end)
            guard utf8.distance(from: startIndex, to: next) <= limit else { return String(self[..<end]) }
            end = next
        }
    }
}
