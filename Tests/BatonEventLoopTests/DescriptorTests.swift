import BatonEventLoop
import Glibc
import SystemPackage
import Testing

extension OwnProcess {
    @Suite("Owned descriptor")
    struct DescriptorTests {
        private static func isOpen(_ number: Int32) -> Bool { fcntl(number, F_GETFD) >= 0 }

        private static func openNull() -> Int32 { open("/dev/null", O_RDWR | O_CLOEXEC) }

        @Test("Closes when it goes out of scope, and only then")
        func scope() async {
            await #expect(processExitsWith: .success) {
                let number = Self.openNull()
                do {
                    let owned = OwnedDescriptor(takingOwnershipOf: number)
                    #expect(owned.rawValue == number)
                    #expect(owned.fileDescriptor.rawValue == number)
                    #expect(Self.isOpen(number))
                }
                #expect(!Self.isOpen(number))
            }
        }

        @Test("Closes once when asked, and leaves the number to whoever gets it next")
        func close() async {
            await #expect(processExitsWith: .success) {
                let number = Self.openNull()
                func closeAndReuse() throws -> Int32 {
                    let owned = OwnedDescriptor(takingOwnershipOf: number)
                    try owned.close()
                    return Self.openNull()
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
                let number = Self.openNull()
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
        /// Whether something holds, or does in a moment: once a second Dispatch opens a file of each thread of its own, and
        /// takes a number meanwhile.
        private static func holdsSoon(_ condition: () -> Bool) -> Bool { (0..<10_000).contains { _ in condition() } }

        @Test("The limit is near exactly when the reserve is all that is free, and sockets leave it free")
        func reserve() async {
            await #expect(processExitsWith: .success) {
                // Dispatch opens descriptors of its own for its first source, when its thread gets a turn.
                let loop = EventLoop(name: "test")
                let (turns, turn) = AsyncStream<Void>.makeStream()
                let timer = Timer(on: loop) { turn.finish() }
                timer.schedule(after: .zero)
                for await _ in turns {}
                #expect(DescriptorLimit.set(to: 100))
                var fillers: [Int32] = []
                while !DescriptorLimit.isNearlyReached {
                    fillers.append(open("/dev/null", O_RDONLY))
                    try #require(fillers.count < 200)
                }
                // The next number given out is the first of the reserve, once what was only taken for a moment is filled.
                #expect(
                    Self.holdsSoon {
                        let next = open("/dev/null", O_RDONLY)
                        guard next >= 100 - DescriptorLimit.reserve else {
                            fillers.append(next)
                            return false
                        }
                        close(next)
                        return next == 100 - DescriptorLimit.reserve
                    })
                #expect(
                    #expect(throws: SocketError.self) {
                        _ = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
                    }?.code == .outOfResources)
                close(fillers.removeLast())
                #expect(Self.holdsSoon { !DescriptorLimit.isNearlyReached })
                #expect(Self.holdsSoon { (try? Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)) != nil })
                for filler in fillers { close(filler) }
            }
        }

        @Test("Raising respects the hard limit and lowers nothing")
        func raise() async {
            await #expect(processExitsWith: .success) {
                #expect(DescriptorLimit.set(to: 256))
                #expect(DescriptorLimit.raise(to: 300) == 256)
                #expect(DescriptorLimit.raise(to: 200) == 300)
                #expect(DescriptorLimit.raise(to: .max) == 300)
                // Unlimited is not near.
                #expect(!DescriptorLimit.isNearlyReached)
            }
        }
    }
}
