public import Foundation

extension Process {
    private static let lock = NSLock()

    /// Starts a process, and makes its pipes where it has any, while nobody else here does so.
    ///
    /// Foundation hears of the end of a process when a socket closes that it opens for it, and a process of the end of its
    /// input when a pipe does. A child that another thread starts at that very moment inherits both, and keeps them open
    /// for as long as it lives (swift-corelibs-foundation issue 4795).
    public static func spawning<Value>(_ start: () throws -> Value) rethrows -> Value {
        try lock.withLock(start)
    }
}
