public import SystemPackage

/// Why an application was not started, or nothing could be opened, as a sentence that begins with a small letter.
public struct LaunchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of failures.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The manifest names no command.
        public static let noCommand = Code(rawValue: "noCommand")
        /// The program is nowhere on `PATH`, or not where the command says.
        public static let commandNotFound = Code(rawValue: "commandNotFound")
        /// The program is there and is no program, or not for this user.
        public static let notExecutable = Code(rawValue: "notExecutable")
        /// The system, or the service manager, could not start it.
        public static let notStarted = Code(rawValue: "notStarted")
        /// What was to be opened is no web address, or no file.
        public static let notOpenable = Code(rawValue: "notOpenable")
        /// `xdg-open` is there and failed.
        public static let openFailed = Code(rawValue: "openFailed")
    }

    public let code: Code
    /// What went wrong. What programs said may stand in it as it is: escape it before a terminal sees it.
    public let message: String
    /// What the system said, where it did.
    public let underlyingError: Errno?

    init(_ code: Code, _ message: String, underlyingError: Errno? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    public var description: String { message }
}
