// SPDX-License-Identifier: Apache-2.0

/// Bytes of a budget for one thing that grows, such as a table: taken as it grows, and given back with the last
/// reference.
///
/// Safe to use from any thread; nothing here waits.
package final class GrowingRoom: Sendable {
    private let held = Lock(0)
    private let take: @Sendable (Int) -> Bool
    private let giveBack: @Sendable (Int) -> Void

    /// Room of which nothing is taken yet.
    ///
    /// - Parameters:
    ///   - take: takes so many bytes more, or none where there are not so many.
    ///   - giveBack: gives some of them back.
    package init(take: @escaping @Sendable (Int) -> Bool, giveBack: @escaping @Sendable (Int) -> Void) {
        self.take = take
        self.giveBack = giveBack
    }

    /// Room in a part of a budget.
    package convenience init(in part: ByteBudget.Part) {
        self.init(take: { part.take($0) }, giveBack: { part.giveBack($0) })
    }

    deinit {
        giveBack(held.withLock { $0 })
    }

    /// Bytes that it has.
    package var bytes: Int { held.withLock { $0 } }

    /// Takes so many bytes more, or none where there are not so many.
    package func grow(by bytes: Int) -> Bool {
        guard take(bytes) else { return false }
        held.withLock { $0 += bytes }
        return true
    }

    /// Gives some of its bytes back.
    package func shrink(by bytes: Int) {
        held.withLock { held in
            precondition(bytes <= held, "no more is given back than was taken")
            held -= bytes
        }
        giveBack(bytes)
    }
}

/// A part of a budget that several owners hold rooms in: each leaves for the others at least as much as it has.
///
/// So the first one gets half of what there is, the next half of what is left, and nobody all of it.
package final class SharedPart: Sendable {
    private let part: ByteBudget.Part
    /// What each owner holds; those that hold nothing are not in it.
    private let books = Lock<[String: Int]>([:])

    /// - Parameter part: of these owners alone.
    package init(_ part: ByteBudget.Part) {
        self.part = part
    }

    /// Bytes that all owners hold.
    package var held: Int { part.held }

    /// Room for something of an owner, of which nothing is taken yet.
    package func room(of owner: String) -> GrowingRoom {
        GrowingRoom(take: { self.take($0, owner) }, giveBack: { self.giveBack($0, owner) })
    }

    private func take(_ bytes: Int, _ owner: String) -> Bool {
        books.withLock { books in
            let held = books[owner, default: 0] + bytes
            guard held <= part.available - bytes, part.take(bytes) else { return false }
            if held > 0 { books[owner] = held }
            return true
        }
    }

    private func giveBack(_ bytes: Int, _ owner: String) {
        books.withLock { books in
            let held = books[owner, default: 0] - bytes
            books[owner] = held > 0 ? held : nil
            part.giveBack(bytes)
        }
    }
}
