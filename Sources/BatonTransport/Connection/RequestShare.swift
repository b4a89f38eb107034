// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// What the requests of one connection's peer hold while their streams live: each as it came and as it was read, and
/// what it is answered.
///
/// A floor is the connection's for certain, whatever others hold. What goes beyond it comes out of what is left of the
/// part. Safe to use from any thread.
final class RequestShare: Sendable {
    private let floor: Int
    private let part: ByteBudget.Part
    private let held = Lock(0)

    /// - Parameters:
    ///   - floor: bytes that were taken of the part for this connection before.
    ///   - part: what is beyond the floor comes out of it.
    init(floor: Int, above part: ByteBudget.Part) {
        self.floor = floor
        self.part = part
    }

    /// Room for the request of a stream and for what follows from it; `nil` where there are not so many bytes.
    func room(of bytes: Int) -> GrowingRoom? {
        let room = GrowingRoom(take: { self.take($0) }, giveBack: { self.giveBack($0) })
        return room.grow(by: bytes) ? room : nil
    }

    private func take(_ bytes: Int) -> Bool {
        held.withLock { held in
            guard part.take(above(held + bytes) - above(held)) else { return false }
            held += bytes
            return true
        }
    }

    private func giveBack(_ bytes: Int) {
        held.withLock { held in
            part.giveBack(above(held) - above(held - bytes))
            held -= bytes
        }
    }

    private func above(_ bytes: Int) -> Int { max(0, bytes - floor) }
}
