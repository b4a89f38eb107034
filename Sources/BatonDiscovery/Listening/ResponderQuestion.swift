// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop

/// One question that the responder of this machine asks on the network. Its thread may block for 25 s if the daemon
/// hangs.
actor ResponderQuestion {
    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private var reference: ServiceReference?
    private var isClosed = false

    init(on executor: BlockingExecutor) {
        self.executor = executor
    }

    /// Has the responder ask for the TXT record of an instance until ``close()``.
    ///
    /// - Returns: whether it does, or why not.
    func ask(instance: String, type: String) -> MulticastEar.Responder {
        guard !isClosed else { return .waiting }
        do {
            reference = try ServiceReference.queryText(name: instance, type: type)
            return .asks
        } catch {
            return error.isOfAbsence ? .absent : .failed(error.explanation())
        }
    }

    func close() {
        isClosed = true
        reference?.close()
        reference = nil
    }
}
