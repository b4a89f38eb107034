// SPDX-License-Identifier: Apache-2.0

package enum ShellWord {
    /// Returns a text as one word of a POSIX shell, quoted if it needs to be.
    package static func quoted(_ text: String) -> String {
        let plain: Set<Character> = ["/", ".", "_", "-", ":", "+"]
        if !text.isEmpty, text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) || plain.contains($0) }) {
            return text
        }
        let parts = text.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: #"'\''"#) + "'"
    }
}
