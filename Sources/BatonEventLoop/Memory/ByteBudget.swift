// SPDX-License-Identifier: Apache-2.0

/// A total of bytes that peers and programs may make this process hold, divided into parts for classes of users.
///
/// A part has a **reserve** that no other part ever gets, so that no class starves another. Bytes that are reserved for
/// no part go to the first that asks. No part gets more than its **ceiling**. So the sum of all held bytes never
/// exceeds the total. A part is a budget itself, which may be divided again.
///
/// It only counts, and allocates nothing itself. Safe to use from any thread; no call waits.
package final class ByteBudget: Sendable {
    /// A part of a budget.
    package typealias Part = ByteBudget

    /// The bytes that no other part gets.
    package let reserved: Int
    /// The most bytes that may be held.
    package let ceiling: Int
    /// Gives the bytes beyond the reserve; nil for a whole budget.
    private let whole: ByteBudget?
    private let count = Lock(0)

    /// Makes a budget.
    ///
    /// - Parameter bytes: the total of bytes that may be held.
    package convenience init(bytes: Int) {
        precondition(bytes > 0, "a budget is not empty")
        self.init(reserved: bytes, ceiling: bytes, of: nil)
    }

    private init(reserved: Int, ceiling: Int, of whole: ByteBudget?) {
        self.reserved = reserved
        self.ceiling = ceiling
        self.whole = whole
    }

    /// Makes the part of one class: once for each, before anything is held.
    ///
    /// - Parameters:
    ///   - reserved: bytes for this class alone. All reserves together must fit into the total.
    ///   - ceiling: the most bytes that the class gets.
    package func part(reserved: Int, ceiling: Int) -> Part {
        precondition(0 <= reserved && reserved <= ceiling && ceiling <= self.ceiling, "a part lies within its ceiling")
        let fits = take(reserved)
        precondition(fits, "what is reserved fits the budget")
        return ByteBudget(reserved: reserved, ceiling: ceiling, of: self)
    }

    /// Makes a part whose reserve was taken from this one before.
    package func part(ofTaken reserved: Int) -> Part {
        ByteBudget(reserved: reserved, ceiling: ceiling, of: self)
    }

    /// The bytes that are held, with the whole reserve of each part.
    package var held: Int { count.withLock { $0 } }

    /// Bytes that it could get at this moment.
    package var available: Int {
        count.withLock { held in min(ceiling - held, max(0, reserved - held) + (whole?.available ?? 0)) }
    }

    /// Takes bytes. Returns false, and takes none, if there are not enough.
    package func take(_ bytes: Int) -> Bool {
        count.withLock { held in
            guard bytes <= ceiling - held else { return false }
            let more = above(held + bytes) - above(held)
            guard more == 0 || whole?.take(more) == true else { return false }
            held += bytes
            return true
        }
    }

    /// Gives back bytes that ``take(_:)`` took.
    package func giveBack(_ bytes: Int) {
        count.withLock { held in
            precondition(bytes <= held, "no more is given back than was taken")
            whole?.giveBack(above(held) - above(held - bytes))
            held -= bytes
        }
    }

    /// Takes half of the available bytes, so that the next caller gets some as well. They go back with the last
    /// reference.
    ///
    /// - Parameter most: an upper bound; the reservation may have fewer bytes, even none.
    package func lease(atMost most: Int) -> ByteReservation {
        while true {
            let bytes = max(0, min(most, available / 2))
            // Another thread may have taken them meanwhile.
            if take(bytes) { return ByteReservation(holding: bytes, take: { self.take($0) }, giveBack: giveBack) }
        }
    }

    private func above(_ bytes: Int) -> Int { max(0, bytes - reserved) }
}
