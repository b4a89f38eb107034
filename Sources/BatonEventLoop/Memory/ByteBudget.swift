// SPDX-License-Identifier: Apache-2.0

/// Bytes that this process may hold because somebody made it: one total, in which each class of users has a part.
///
/// Of its part a class has something **reserved**, which nobody else ever gets, so that no class starves another.
/// What is reserved for nobody is **common**: it goes to whoever asks first, and no class gets more in all than its
/// **ceiling**. So the sum of what is held never exceeds the total, whoever tries.
///
/// It counts, and holds no memory itself. Safe to use from any thread; nothing here waits.
package final class ByteBudget: Sendable {
    private struct Books {
        var common: Int
        /// What each part holds, by its number.
        var held: [Int] = []
    }

    /// Bytes that may be held in all.
    package let bytes: Int
    private let books: Lock<Books>

    /// - Parameter bytes: what may be held in all.
    package init(bytes: Int) {
        precondition(bytes > 0, "a budget is not empty")
        self.bytes = bytes
        books = Lock(Books(common: bytes))
    }

    /// Sets a part aside for one class: once for each, before anything is held.
    ///
    /// - Parameters:
    ///   - reserved: bytes that the class has for certain. All that is reserved has to fit the total.
    ///   - ceiling: the most that it gets.
    package func part(reserved: Int, ceiling: Int) -> Part {
        precondition(0 <= reserved && reserved <= ceiling && ceiling <= bytes, "a part lies within its ceiling")
        let number = books.withLock { books in
            books.common -= reserved
            books.held.append(0)
            return books.held.count - 1
        }
        precondition(common >= 0, "what is reserved fits the budget")
        return Part(of: self, number: number, reserved: reserved, ceiling: ceiling)
    }

    /// Bytes that are neither reserved nor held.
    package var common: Int { books.withLock { $0.common } }

    /// Bytes that are held in all.
    package var held: Int { books.withLock { $0.held.reduce(0, +) } }

    /// What one class of users may hold.
    package final class Part: Sendable {
        /// Bytes that it has for certain.
        package let reserved: Int
        /// The most bytes that it gets.
        package let ceiling: Int
        private let budget: ByteBudget
        private let number: Int

        fileprivate init(of budget: ByteBudget, number: Int, reserved: Int, ceiling: Int) {
            self.budget = budget
            self.number = number
            self.reserved = reserved
            self.ceiling = ceiling
        }

        /// Bytes that it holds.
        package var held: Int { budget.books.withLock { $0.held[number] } }

        /// Bytes that it could still get at this moment.
        package var available: Int { budget.books.withLock { available($0) } }

        /// Takes so many bytes, or none where there are not so many.
        package func take(_ bytes: Int) -> Bool {
            budget.books.withLock { books in
                guard bytes <= available(books) else { return false }
                change(&books, by: bytes)
                return true
            }
        }

        /// Gives back what ``take(_:)`` took, or some of it.
        package func giveBack(_ bytes: Int) {
            budget.books.withLock { change(&$0, by: -bytes) }
        }

        /// Takes half of what there is left, so that who comes next finds something too; goes back with the last
        /// reference.
        ///
        /// - Parameter most: bytes; it may get fewer, and none.
        package func lease(atMost most: Int) -> Lease {
            let bytes = budget.books.withLock { books in
                let bytes = max(0, min(most, available(books) / 2))
                change(&books, by: bytes)
                return bytes
            }
            return Lease(bytes: bytes, of: self)
        }

        private func available(_ books: Books) -> Int {
            let held = books.held[number]
            return min(ceiling - held, max(0, reserved - held) + books.common)
        }

        private func change(_ books: inout Books, by bytes: Int) {
            let before = books.held[number]
            precondition(before + bytes >= 0, "no more is given back than was taken")
            books.held[number] = before + bytes
            books.common -= max(0, before + bytes - reserved) - max(0, before - reserved)
        }
    }

    /// Bytes of a part, held for as long as somebody holds this.
    package final class Lease: Sendable {
        /// How many.
        package let bytes: Int
        private let part: Part

        fileprivate init(bytes: Int, of part: Part) {
            self.bytes = bytes
            self.part = part
        }

        deinit {
            part.giveBack(bytes)
        }
    }
}
