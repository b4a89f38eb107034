// SPDX-License-Identifier: Apache-2.0

/// A total of bytes that peers and programs may make this process hold, divided into parts for classes of users.
///
/// A part has a **reserve** that no other part ever gets, so that no class starves another. Bytes that are reserved for
/// no part are **common** and go to the first that asks. No part gets more than its **ceiling**. So the sum of all held
/// bytes never exceeds the total.
///
/// It only counts, and allocates nothing itself. Safe to use from any thread; no call waits.
package final class ByteBudget: Sendable {
    private struct State {
        var common: Int
        /// The bytes that each part holds, by its number.
        var held: [Int] = []
    }

    /// The total of bytes that may be held.
    package let bytes: Int
    private let state: Lock<State>

    /// Makes a budget without parts.
    ///
    /// - Parameter bytes: the total of bytes that may be held.
    package init(bytes: Int) {
        precondition(bytes > 0, "a budget is not empty")
        self.bytes = bytes
        state = Lock(State(common: bytes))
    }

    /// Makes the part of one class: once for each, before anything is held.
    ///
    /// - Parameters:
    ///   - reserved: bytes for this class alone. All reserves together must fit into the total.
    ///   - ceiling: the most bytes that the class gets.
    package func part(reserved: Int, ceiling: Int) -> Part {
        precondition(0 <= reserved && reserved <= ceiling && ceiling <= bytes, "a part lies within its ceiling")
        let number = state.withLock { state in
            state.common -= reserved
            state.held.append(0)
            return state.held.count - 1
        }
        precondition(common >= 0, "what is reserved fits the budget")
        return Part(of: self, number: number, reserved: reserved, ceiling: ceiling)
    }

    /// Bytes that are neither reserved nor held.
    package var common: Int { state.withLock { $0.common } }

    /// The total of held bytes.
    package var held: Int { state.withLock { $0.held.reduce(0, +) } }

    /// The bytes of one class of users.
    package final class Part: Sendable {
        /// The bytes that no other part gets.
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
        package var held: Int { budget.state.withLock { $0.held[number] } }

        /// Bytes that it could get at this moment.
        package var available: Int { budget.state.withLock { available($0) } }

        /// Takes bytes. Returns false, and takes none, if there are not enough.
        package func take(_ bytes: Int) -> Bool {
            budget.state.withLock { state in
                guard bytes <= available(state) else { return false }
                change(&state, by: bytes)
                return true
            }
        }

        /// Gives back bytes that ``take(_:)`` took.
        package func giveBack(_ bytes: Int) {
            budget.state.withLock { change(&$0, by: -bytes) }
        }

        /// Takes half of the available bytes, so that the next caller gets some as well. They go back with the last
        /// reference.
        ///
        /// - Parameter most: an upper bound; the reservation may have fewer bytes, even none.
        package func lease(atMost most: Int) -> ByteReservation {
            let bytes = budget.state.withLock { state in
                let bytes = max(0, min(most, available(state) / 2))
                change(&state, by: bytes)
                return bytes
            }
            return ByteReservation(holding: bytes, take: { self.take($0) }, giveBack: { self.giveBack($0) })
        }

        private func available(_ state: State) -> Int {
            let held = state.held[number]
            return min(ceiling - held, max(0, reserved - held) + state.common)
        }

        private func change(_ state: inout State, by bytes: Int) {
            let before = state.held[number]
            precondition(before + bytes >= 0, "no more is given back than was taken")
            state.held[number] = before + bytes
            state.common -= max(0, before + bytes - reserved) - max(0, before - reserved)
        }
    }
}
