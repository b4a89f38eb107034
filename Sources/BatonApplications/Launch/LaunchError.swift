// SPDX-License-Identifier: Apache-2.0

package import SystemPackage

/// Why an application was not started, or nothing could be opened, as a sentence that begins with a small letter.
package struct LaunchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of failures.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The manifest names no command.
        package static let noCommand = Code(rawValue: "noCommand")
        /// The program is nowhere on `PATH`, or not where the command says.
        package static let commandNotFound = Code(rawValue: "commandNotFound")
        /// The program is there and is no program, or not for this user.
        package static let notExecutable = Code(rawValue: "notExecutable")
        /// The system, or the service manager, could not start it.
        package static let notStarted = Code(rawValue: "notStarted")
        /// The text is no web address, or the path is no file.
        package static let notOpenable = Code(rawValue: "notOpenable")
        /// `xdg-open` is there and failed.
        package static let openFailed = Code(rawValue: "openFailed")
    }

    package let code: Code
    /// The problem. It may quote the output of programs: escape it before a terminal shows it.
    package let message: String
    /// The system's error, if it gave one.
    package let underlyingError: Errno?

    init(_ code: Code, _ message: String, underlyingError: Errno? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    package var description: String { message }
}
