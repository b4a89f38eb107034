// SPDX-License-Identifier: Apache-2.0

public import Baton
public import Foundation

/// The error as an `NSError`, with Cocoa's domain and codes for the failures that Cocoa knows.
extension UserActivityError: CustomNSError, LocalizedError {
    /// The domain of all its codes; those of Baton's own begin at 46,001.
    public static var errorDomain: String { NSCocoaErrorDomain }

    public var errorCode: Int { code.rawValue }

    public var errorDescription: String? { message }

    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: message] }
}
