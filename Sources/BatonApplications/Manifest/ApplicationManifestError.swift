// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// Why something is no manifest of an application, as a sentence about it that begins with a small letter.
package struct ApplicationManifestError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of faults.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String

        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Something that has to be there is not.
        package static let missing = Code(rawValue: "missing")
        /// A value has not the required form.
        package static let malformed = Code(rawValue: "malformed")
        /// Something is over one of ``ManifestBounds``.
        package static let tooLarge = Code(rawValue: "tooLarge")
        /// A build variable such as `$(PRODUCT_NAME)` has no value.
        package static let unresolved = Code(rawValue: "unresolved")
    }

    package let code: Code
    /// The problem and, if it is not plain, the next step. It may quote the file: escape it before a terminal shows it.
    package let problem: String

    package init(_ code: Code, _ problem: String) {
        self.code = code
        self.problem = problem
    }

    package var description: String { problem }

    static func missing(_ problem: String) -> Self { Self(.missing, problem) }
    static func malformed(_ problem: String) -> Self { Self(.malformed, problem) }
    static func unresolved(_ problem: String) -> Self { Self(.unresolved, problem) }

    /// The file could not be opened or read.
    static func unreadable(_ error: Errno, _ subject: String = "it") -> Self {
        switch error {
        case .fileTooLarge: tooLarge("\(subject) has over \(ManifestBounds.fileSize >> 10) KiB")
        case .invalidArgument: malformed("\(subject) is no file")
        case .noSuchFileOrDirectory: missing("\(subject) does not exist")
        case _: malformed("\(subject) cannot be read (\(error))")
        }
    }

    static func tooLarge(_ problem: String) -> Self { Self(.tooLarge, problem) }
}
