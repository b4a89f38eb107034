// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// The bytes that requests of one connection's peer hold while their streams live: as received, as parsed, and their
/// answers.
///
/// The floor always belongs to the connection. Further bytes come from the rest of the part. Safe to use from any
/// thread.
final class RequestShare: Sendable {
    private let floor: Int
    private let part: ByteBudget.Part
    private let held = Lock(0)

    /// Makes a share that holds nothing.
    ///
    /// - Parameters:
    ///   - floor: bytes that were taken from the part for this connection before.
    ///   - part: gives the bytes beyond the floor.
    init(floor: Int, above part: ByteBudget.Part) {
        self.floor = floor
        self.part = part
    }

    /// Reserves bytes for the request of a stream, and later for its answer; `nil` if there are not enough.
    func reservation(of bytes: Int) -> ByteReservation? {
        let reservation = ByteReservation(take: { self.take($0) }, giveBack: { self.giveBack($0) })
        return reservation.grow(by: bytes) ? reservation : nil
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
