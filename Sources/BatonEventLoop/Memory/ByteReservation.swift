// SPDX-License-Identifier: Apache-2.0

/// Bytes of a budget for one object that grows, such as a table. They are taken as it grows, and given back with the
/// last reference.
///
/// Safe to use from any thread; no call waits.
package final class ByteReservation: Sendable {
    private let held: Lock<Int>
    private let take: @Sendable (Int) -> Bool
    private let giveBack: @Sendable (Int) -> Void

    /// Makes a reservation.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that were taken for it before; none by default.
    ///   - take: takes more bytes. Returns false, and takes none, if there are not enough.
    ///   - giveBack: gives bytes back.
    package init(
        holding bytes: Int = 0, take: @escaping @Sendable (Int) -> Bool, giveBack: @escaping @Sendable (Int) -> Void
    ) {
        held = Lock(bytes)
        self.take = take
        self.giveBack = giveBack
    }

    /// Makes an empty reservation in a part of a budget.
    package convenience init(in part: ByteBudget.Part) {
        self.init(take: { part.take($0) }, giveBack: { part.giveBack($0) })
    }

    deinit {
        giveBack(held.withLock { $0 })
    }

    /// The reserved bytes.
    package var bytes: Int { held.withLock { $0 } }

    /// Takes more bytes. Returns false, and takes none, if there are not enough.
    package func grow(by bytes: Int) -> Bool {
        guard take(bytes) else { return false }
        held.withLock { $0 += bytes }
        return true
    }

    /// Gives bytes back.
    package func shrink(by bytes: Int) {
        held.withLock { held in
            precondition(bytes <= held, "no more is given back than was taken")
            held -= bytes
        }
        giveBack(bytes)
    }
}

/// A part of a budget that several owners share. Each may take bytes only if at least as many as it then holds stay
/// available.
///
/// So the first owner gets half of the part, the next one half of the rest, and none gets all of it.
package final class SharedPart: Sendable {
    private let part: ByteBudget.Part
    /// The bytes of each owner that holds some.
    private let heldByOwner = Lock<[String: Int]>([:])

    /// Shares a part.
    ///
    /// - Parameter part: used by these owners only.
    package init(_ part: ByteBudget.Part) {
        self.part = part
    }

    /// Bytes that all owners hold.
    package var held: Int { part.held }

    /// An empty reservation of an owner.
    package func reservation(of owner: String) -> ByteReservation {
        ByteReservation(take: { self.take($0, owner) }, giveBack: { self.giveBack($0, owner) })
    }

    private func take(_ bytes: Int, _ owner: String) -> Bool {
        heldByOwner.withLock { heldByOwner in
            let held = heldByOwner[owner, default: 0] + bytes
            guard held <= part.available - bytes, part.take(bytes) else { return false }
            if held > 0 { heldByOwner[owner] = held }
            return true
        }
    }

    private func giveBack(_ bytes: Int, _ owner: String) {
        heldByOwner.withLock { heldByOwner in
            let held = heldByOwner[owner, default: 0] - bytes
            heldByOwner[owner] = held > 0 ? held : nil
            part.giveBack(bytes)
        }
    }
}
