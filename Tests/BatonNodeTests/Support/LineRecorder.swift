// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Logging

/// Keeps what is logged.
struct LineRecorder: LogHandler {
    private final class Store: Sendable {
        let lines = Lock<[String]>([])
    }

    private let store = Store()
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    var lines: [String] { store.lines.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        store.lines.withLock { $0.append("\(event.message)") }
    }
}
