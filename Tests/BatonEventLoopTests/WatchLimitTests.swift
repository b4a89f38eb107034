// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CSpawn
import Glibc
import SystemPackage
import Testing

@testable import BatonEventLoop

extension OwnProcess {
    /// The kernel watches no further descriptor, as if `fs.epoll.max_user_watches` was reached (epoll_ctl(2), ENOSPC).
    ///
    /// It refuses one thread only. The loop keeps its own thread for an hour, so that thread is never refused.
    @Suite("No more watches")
    struct WatchLimitTests {
        @Test("A listener tells its owner, tries again, and accepts")
        func listener() async {
            await #expect(processExitsWith: .success) {
                let loop = EventLoop(name: "test", idleWait: 3_600_000)
                try await Self.begin(loop)
                let listener = try Listener(at: .ip(.ipv4Loopback, port: 0), on: loop)
                let accepted = Box<[Socket]>([])
                let troubles = Box<[SocketError]>([])
                try await PrivateThread(name: "refused", waking: EventLoop(name: "test")).perform {
                    #expect(baton_refuse_watches() == 1)
                    listener.start(
                        onTrouble: { error in troubles.change { $0.append(error) } },
                        onAccept: { socket in accepted.change { $0.append(socket) } })
                }
                try await eventually("told") { troubles.value.count == 1 }
                #expect(troubles.value.allSatisfy { $0.code == .outOfResources && $0.underlyingError == .noSpace })
                let dialer = try await Socket.connect(to: listener.localAddress, on: loop)
                try await eventually("accepted") { accepted.value.count == 1 }
                #expect(troubles.value.count == 1)
                withExtendedLifetime(dialer) {}
            }
        }

        @Test("A socket runs its handlers, and reading and writing throw the reason", arguments: [true, false])
        func socket(isWriting: Bool) async {
            await #expect(processExitsWith: .success) { [isWriting] in
                let loop = EventLoop(name: "test", idleWait: 3_600_000)
                try await Self.begin(loop)
                let (near, far) = try Socket.pair(on: loop, loop)
                if isWriting { near.pauseReading(true) }
                let codes = Box<[SocketError.Code]>([])
                try await PrivateThread(name: "refused", waking: EventLoop(name: "test")).perform {
                    #expect(baton_refuse_watches() == 1)
                    near.start(
                        onReadable: {
                            var byte: UInt8 = 0
                            do throws(SocketError) {
                                _ = try withUnsafeMutableBytes(of: &byte) { (bytes) throws(SocketError) in
                                    try near.read(into: bytes)
                                }
                            } catch {
                                codes.change { $0.append(error.code) }
                            }
                        },
                        onWritable: {
                            do throws(SocketError) {
                                _ = try withUnsafeBytes(of: UInt8(1)) { (bytes) throws(SocketError) in
                                    try near.write(bytes)
                                }
                            } catch {
                                codes.change { $0.append(error.code) }
                            }
                        })
                    if isWriting { near.wantWrite(true) }
                }
                try await eventually("told") { codes.value == [.outOfResources, .outOfResources] }
                near.close()
                withExtendedLifetime(far) {}
            }
        }

        /// Makes the loop get the thread that it keeps.
        private static func begin(_ loop: EventLoop) async throws {
            let (near, far) = try Socket.pair(on: loop, EventLoop(name: "far"))
            let isRead = Box(false)
            near.start(
                onReadable: {
                    near.close()
                    isRead.value = true
                }, onWritable: {})
            #expect(try Peer.writeOnce(far, [1]) == 1)
            try await eventually("the loop has a thread") { isRead.value }
        }
    }
}
