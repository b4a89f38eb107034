// SPDX-License-Identifier: Apache-2.0

/// The name of an activity on the command line: the beginning of its id or of its title.
struct ActivityName: Sendable, Equatable {
    /// The text as the user wrote it.
    let text: String

    /// The activities that have the name.
    ///
    /// An id counts before a title, so that no device can hide another one's activity behind a title. A whole title
    /// counts before the beginning of a longer one.
    func matches(in activities: [ListedActivity]) -> [ListedActivity] {
        let name = text.lowercased()
        let tests: [(ListedActivity) -> Bool] = [
            { $0.idText.hasPrefix(name) }, { $0.title.lowercased() == name }, { $0.title.lowercased().hasPrefix(name) },
        ]
        for test in tests {
            let matching = activities.filter(test)
            if !matching.isEmpty { return matching }
        }
        return []
    }

    /// The name in a sentence, safe to show.
    var shown: String { "“\(SafeText.escaped(text))”" }
}
