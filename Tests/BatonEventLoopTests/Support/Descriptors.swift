// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import Testing

/// Descriptors of a test in a process of its own. Dispatch takes the lowest free number for a moment once a second,
/// when it opens a file of each thread.
enum Descriptors {
    /// Opens a file with a number so high that Dispatch does not get it.
    static func openNull() -> Int32 {
        let lowest = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(lowest) }
        return fcntl(lowest, F_DUPFD_CLOEXEC, 200)
    }

    /// The limits of this process, soft and hard.
    static var limits: rlimit {
        var limits = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
        return limits
    }

    /// Sets the soft limit of this process.
    static func limit(to count: Int32) throws {
        var changed = limits
        changed.rlim_cur = rlim_t(count)
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &changed) == 0)
    }

    /// Limits the numbers, and uses all free ones below the reserve.
    ///
    /// - Returns: the numbers that it used.
    static func fill(to limit: Int32) throws -> [Int32] {
        try self.limit(to: limit)
        let reserve = limit - DescriptorLimit.reserve
        var fillers: [Int32] = []
        let isFull = holdsSoon {
            let next = open("/dev/null", O_RDONLY)
            guard next >= 0 else { return false }
            guard next < reserve else {
                close(next)
                return (0..<reserve).allSatisfy(isTakenForGood)
            }
            fillers.append(next)
            return false
        }
        try #require(isFull)
        return fillers
    }

    /// Whether a number is in use, and not only by Dispatch for a moment.
    private static func isTakenForGood(_ number: Int32) -> Bool {
        var target = [CChar](repeating: 0, count: 64)
        let length = readlink("/proc/self/fd/\(number)", &target, target.count)
        return length > 0 && !target[..<length].starts(with: "/proc/".utf8.map(CChar.init))
    }

    /// Whether a condition holds within a minute.
    static func holdsSoon(_ condition: () -> Bool) -> Bool {
        let deadline = ContinuousClock.now + .seconds(60)
        while !condition() {
            guard ContinuousClock.now < deadline else { return false }
        }
        return true
    }
}
