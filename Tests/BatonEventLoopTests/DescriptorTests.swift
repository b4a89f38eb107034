// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc
import SystemPackage
import Testing

extension OwnProcess {
    @Suite("Owned descriptor")
    struct DescriptorTests {
        private static func isOpen(_ number: Int32) -> Bool { fcntl(number, F_GETFD) >= 0 }

        @Test("Closes when it goes out of scope, and only then")
        func scope() async {
            await #expect(processExitsWith: .success) {
                let number = Descriptors.openNull()
                do {
                    let owned = OwnedDescriptor(takingOwnershipOf: number)
                    #expect(owned.rawValue == number)
                    #expect(owned.fileDescriptor.rawValue == number)
                    #expect(Self.isOpen(number))
                }
                #expect(!Self.isOpen(number))
            }
        }

        @Test("Closes once, and not the next descriptor with the same number")
        func close() async {
            await #expect(processExitsWith: .success) {
                let number = Descriptors.openNull()
                func closeAndReuse() throws -> Int32 {
                    let owned = OwnedDescriptor(takingOwnershipOf: number)
                    try owned.close()
                    return Descriptors.openNull()
                }
                let reused = try closeAndReuse()
                #expect(reused == number)
                #expect(Self.isOpen(reused))
            }
        }

        @Test("Reports what close reports")
        func closeFails() async {
            await #expect(processExitsWith: .success) {
                #expect(throws: Errno.badFileDescriptor) {
                    try OwnedDescriptor(takingOwnershipOf: FileDescriptor(rawValue: 999)).close()
                }
            }
        }

        @Test("Does not close what it released")
        func release() async {
            await #expect(processExitsWith: .success) {
                let number = Descriptors.openNull()
                do {
                    let owned = OwnedDescriptor(takingOwnershipOf: number)
                    #expect(owned.release() == number)
                }
                #expect(Self.isOpen(number))
            }
        }
    }
}

extension OwnProcess {
    @Suite("Descriptor limit")
    struct DescriptorLimitTests {
        @Test("The limit is near exactly when the reserve is all that is free, and sockets leave it free")
        func reserve() async {
            await #expect(processExitsWith: .success) {
                // Dispatch opens descriptors of its own for its first source, when its thread runs.
                let loop = EventLoop(name: "test")
                let (turns, turn) = AsyncStream<Void>.makeStream()
                let timer = Timer(on: loop) { turn.finish() }
                timer.schedule(after: .zero)
                for await _ in turns {}
                var fillers = try Descriptors.fill(to: 100)
                #expect(DescriptorLimit.isNearlyReached)
                #expect(
                    #expect(throws: SocketError.self) {
                        _ = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
                    }?.code == .outOfResources)
                close(fillers.removeLast())
                #expect(Descriptors.holdsSoon { !DescriptorLimit.isNearlyReached })
                #expect(Descriptors.holdsSoon { (try? Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)) != nil })
                for filler in fillers { close(filler) }
            }
        }

        @Test("Raising respects the hard limit and lowers nothing")
        func raise() async {
            await #expect(processExitsWith: .success) {
                try Descriptors.limit(to: 256)
                DescriptorLimit.raise(to: 300)
                #expect(Descriptors.limits.rlim_cur == 300)
                DescriptorLimit.raise(to: 200)
                #expect(Descriptors.limits.rlim_cur == 300)
                DescriptorLimit.raise(to: .max)
                #expect(Descriptors.limits.rlim_cur == Descriptors.limits.rlim_max)
                // Unlimited is not near.
                #expect(!DescriptorLimit.isNearlyReached)
            }
        }
    }
}
