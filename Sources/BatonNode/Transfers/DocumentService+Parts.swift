// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import SystemPackage

/// What is kept of documents whose transfers were interrupted.
extension DocumentService {
    /// How long listing and deleting parts may take. A disk that hangs holds one thread for each attempt.
    private static let partsDeadline = Duration.seconds(15)

    /// The parts that no transfer uses at this moment, the newest first.
    func keptParts() async throws(HandoffError) -> [KeptPart] {
        try await onThread { [ledger] in try ledger.keptParts() }
    }

    /// Deletes a part.
    ///
    /// - Throws: `limitExceeded` while a transfer uses it, `destinationUnwritable` where its disk cannot be reached.
    func discard(_ part: KeptPart) async throws(HandoffError) {
        switch try await onThread({ [ledger] in ledger.discard(part) }) {
        case .done: return
        case .inUse:
            throw HandoffError(.limitExceeded, "a transfer goes on with this part: cancel the transfer first")
        case .unreachable:
            let folder = NameDisplay.escaped(part.folder.bytes)
            throw HandoffError(
                .destinationUnwritable, "the folder '\(folder)' cannot be reached or written to. Nothing was deleted.")
        }
    }

    /// Does something that blocks on a disk.
    private func onThread<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(HandoffError) -> Value {
        let executor: BlockingExecutor
        do {
            executor = try BlockingExecutor(name: "baton-parts")
        } catch {
            throw HandoffError(.limitExceeded, "the system has no thread to give: \(error)")
        }
        return try await withDeadline(Self.partsDeadline, "the disk did not answer") {
            do {
                return try await withCheckedThrowingContinuation { continuation in
                    executor.submit { continuation.resume(with: Result { try work() }) }
                }
            } catch {
                throw HandoffError(documentCause: error)
            }
        }
    }
}
