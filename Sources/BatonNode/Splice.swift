import BatonProtocol
import BatonTransport

/// Joins two streams until both directions have ended: what is read from one is written to the other, END is passed on
/// as END and an abort as an abort with the same code. Back-pressure passes through, because nothing is kept here.
func splice(_ first: Stream, _ second: Stream) async {
    await withTaskGroup { group in
        group.addTask { await pump(from: first, to: second) }
        group.addTask { await pump(from: second, to: first) }
    }
}

/// What waits in one direction of a spliced stream: many of them together stay small.
private let queueBound = 256 << 10

private func pump(from source: Stream, to sink: Stream) async {
    do {
        while let buffer = try await source.read() {
            try await sink.write(buffer, queueBound: queueBound)
        }
        await sink.finish()
    } catch {
        let code: ApplicationErrorCode =
            if case .reset(let code) = error.code { code } else { .cancelled }
        await source.reset(code)
        await sink.reset(code)
    }
}
