// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonTestSupport
import Glibc
import SystemPackage
import Testing

/// Resources of this process, by the kernel's account.
enum Machine {
    /// The number of open descriptors. For tests in processes of their own, because other tests open descriptors as
    /// well.
    ///
    /// The test library may hold one for a moment, so a later count can be lower. Check for "not more", after enough
    /// rounds to show a leak.
    static func openDescriptors() -> Int {
        names(in: "/proc/self/fd").count - 1
    }

    /// Makes Dispatch, the concurrency runtime and these loops open the descriptors that they keep, before a count.
    static func warmUp(_ loops: [EventLoop] = []) async {
        for loop in loops { #expect(throws: Never.self) { try Socket.pair(on: loop, loop) } }
        let loop = EventLoop(name: "warm")
        let isDone = Box(0)
        let timer = Timer(on: loop) { isDone.change { $0 += 1 } }
        timer.schedule(after: .milliseconds(1))
        let isWarm = await eventually { isDone.value == 1 }
        #expect(isWarm)
        // The runtime sleeps by a clock of its own.
        try? await Task.sleep(for: .milliseconds(1), clock: .continuous)
        try? await Task.sleep(for: .milliseconds(1), clock: .suspending)
    }

    /// The number of threads of this process with that name.
    static func threads(named name: String) -> Int {
        names(in: "/proc/self/task").count { contents(of: "/proc/self/task/\($0)/comm") == name + "\n" }
    }

    /// The processor time that this process has used, in nanoseconds.
    static func processorTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// Runs a program to its end. Returns whether it succeeded; nil if it cannot be started.
    static func run(_ program: String, _ arguments: [String]) -> Bool? {
        var process = pid_t()
        var pointers = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        guard posix_spawn(&process, program, nil, nil, &pointers, nil) == 0 else { return nil }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }

    static func contents(of path: String) -> String? {
        guard let descriptor = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
            return nil
        }
        let owned = OwnedDescriptor(takingOwnershipOf: descriptor)
        var bytes = [UInt8](repeating: 0, count: 256)
        guard let count = try? bytes.withUnsafeMutableBytes({ try owned.fileDescriptor.read(into: $0) }) else {
            return nil
        }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    private static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
