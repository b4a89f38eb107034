// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The bytes of a session: ciphertext on the side of the network, plaintext on the side of the owner.
extension TLSSession {
    // MARK: - From the network

    /// How many bytes ``receive(_:)`` takes now, before it is at ``TLSLimits/bufferedInput``.
    package var receivableBytes: Int { bio.input.room }

    /// Takes ciphertext from the network: all of it, or none.
    ///
    /// Copies it. ``receive(_:through:deliver:)`` decrypts straight from the caller's bytes instead.
    ///
    /// - Throws: `bufferFull` when it does not fit: read first. The error that ended the session.
    package func receive(_ ciphertext: UnsafeRawBufferPointer) throws(TLSError) {
        if let failure { throw failure }
        guard bio.input.append(ciphertext) else {
            throw TLSError(.bufferFull, "More ciphertext waits to be read than the limit allows.")
        }
    }

    /// Takes ciphertext and delivers what it says, in one go: the fast way for bulk data, without a copy into the
    /// session's buffer. What is left (an incomplete record, or all after a stop) is kept, as ``receive(_:)`` would.
    ///
    /// - Parameters:
    ///   - ciphertext: Bytes from the network; may be empty, to go on after a stop.
    ///   - room: Where the next plaintext is to be put, not empty: where it is wanted in the end, so that nobody copies
    ///     it. Asked for each piece.
    ///   - deliver: Gets what was put there, all that fits or all there is, valid only during the call, and says
    ///     whether to go on. It must not call this session's `receive` or `read`; `write` is allowed.
    /// - Returns: `.incomplete` when all was delivered, `.closed` after the peer's close_notify, `.bytes(0)` after a
    ///   stop.
    /// - Throws: As ``receive(_:)`` and ``read(into:)``; pieces delivered before were good.
    package func receive(
        _ ciphertext: UnsafeRawBufferPointer, into room: () -> UnsafeMutableRawBufferPointer,
        deliver: (UnsafeRawBufferPointer) -> Bool
    ) throws(TLSError) -> ReadResult {
        if let failure { throw failure }
        guard ciphertext.count <= bio.input.room else {
            throw TLSError(.bufferFull, "More ciphertext waits to be read than the limit allows.")
        }
        bio.lent = ciphertext
        defer {
            // It was checked above that it fits.
            _ = bio.input.append(bio.lent)
            bio.lent = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        while true {
            let target = room()
            var filled = 0
            var end: Result<ReadResult, TLSError>?
            while end == nil, filled < target.count {
                do throws(TLSError) {
                    let result = try read(into: UnsafeMutableRawBufferPointer(rebasing: target[filled...]))
                    if case .bytes(let count) = result { filled += count } else { end = .success(result) }
                } catch {
                    end = .failure(error)
                }
            }
            if filled > 0, !deliver(UnsafeRawBufferPointer(rebasing: target[..<filled])) { return .bytes(0) }
            if let end { return try end.get() }
        }
    }

    /// Says that the network has ended: no more bytes will come.
    ///
    /// What was received can still be read; then reading gives `.closed` when the peer had said close_notify, and
    /// throws `truncated` when it had not.
    package func receiveEnd() {
        bio.hasEnded = true
    }

    // MARK: - To the owner

    /// Decrypts at most one record into the front of the buffer. Continues the handshake first where it is incomplete.
    ///
    /// - Returns: `.bytes` with at least 1, unless the buffer is empty.
    /// - Throws: `protocolViolation`, `truncated`, and the peer's alerts: see the type's description for those that
    ///   tell a client that it was refused.
    package func read(into target: UnsafeMutableRawBufferPointer) throws(TLSError) -> ReadResult {
        guard try handshake() == .complete else { return .incomplete }
        guard let base = target.baseAddress, !target.isEmpty else { return .bytes(0) }
        var count = 0
        ErrorQueue.clear()
        let result = SSL_read_ex(pointer, base, target.count, &count)
        if result == 1 {
            noteData(count)
            return .bytes(count)
        }
        if SSL_get_error(pointer, result) == SSL_ERROR_ZERO_RETURN { return .closed }
        try settle(result)
        return .incomplete
    }

    /// Data has come, which gives back messages of the handshake that may come (``TLSLimits/lateMessages``).
    private func noteData(_ count: Int) {
        dataOfLateMessage += count
        let records = dataOfLateMessage / TLSLimits.recordPayload
        guard records > 0 else { return }
        dataOfLateMessage %= TLSLimits.recordPayload
        let limit = context.limits.lateMessages
        lateMessages += min(records, limit - lateMessages)
    }

    // MARK: - From the owner

    /// How many bytes of plaintext ``write(_:)`` takes now, before the ciphertext is at ``TLSLimits/bufferedOutput``.
    /// In whole records, so that small rests do not become small records.
    package var writableBytes: Int {
        guard isComplete, !isShutDown, failure == nil else { return 0 }
        let records = (context.limits.bufferedOutput - bio.output.count) / TLSLimits.maximumRecord
        return max(0, records) * TLSLimits.recordPayload
    }

    /// Encrypts all of the plaintext, in records of 16 KiB, or nothing.
    ///
    /// Give it large pieces: each call ends a record. Replaces the sending key each 64 GiB.
    ///
    /// - Throws: `notReady` before the handshake is complete and after ``shutdown()``; `bufferFull` when the plaintext
    ///   is larger than ``writableBytes``: send first. Neither ends the session. The error that did.
    package func write(_ plaintext: UnsafeRawBufferPointer) throws(TLSError) {
        if let failure { throw failure }
        guard isComplete, !isShutDown else {
            throw TLSError(.notReady, "Nothing can be written before the handshake or after the farewell.")
        }
        guard plaintext.count <= writableBytes else {
            throw TLSError(.bufferFull, "More ciphertext waits to be sent than the limit allows.")
        }
        var rest = plaintext[...]
        while !rest.isEmpty {
            if bytesUntilKeyUpdate == 0 { try updateKey() }
            let payload = UInt64(TLSLimits.recordPayload)
            let records = Int(clamping: (bytesUntilKeyUpdate - 1) / payload + 1)
            let budget = records.multipliedReportingOverflow(by: TLSLimits.recordPayload)
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(budget.overflow ? Int.max : budget.partialValue))
            var written = 0
            ErrorQueue.clear()
            let result = SSL_write_ex(pointer, piece.baseAddress, piece.count, &written)
            guard result == 1, written == piece.count else {
                // "Wants to read" in a write: the peer left a message of the handshake unfinished in the middle of its
                // data. Legal by the letter and done by nobody; waiting would make writing depend on its good will.
                try settle(result)
                throw fail(TLSError(.protocolViolation, "The peer left a handshake message unfinished."))
            }
            let used = UInt64((written - 1) / TLSLimits.recordPayload + 1) * payload
            bytesUntilKeyUpdate -= min(used, bytesUntilKeyUpdate)
            rest = rest.dropFirst(written)
        }
    }

    /// Encrypts all of the plaintext, as ``write(_:)``, into the bytes that go to the network next: the fast way for
    /// bulk data, without a copy through the session's buffer. What does not fit is kept, as ``write(_:)`` would.
    ///
    /// - Parameters:
    ///   - wire: Where ciphertext is put, after what waits already.
    ///   - count: How many bytes were put there is added, also when it throws.
    /// - Throws: As ``write(_:)``.
    package func write(
        _ plaintext: UnsafeRawBufferPointer, into wire: UnsafeMutableRawBufferPointer, count: inout Int
    ) throws(TLSError) {
        let waiting = nextOutput(into: wire)
        bio.room = UnsafeMutableRawBufferPointer(rebasing: wire[waiting...])
        defer {
            count += wire.count - bio.room.count + nextOutput(into: bio.room)
            bio.room = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        }
        try write(plaintext)
    }

    /// Has the next record preceded by a KeyUpdate (RFC 8446, section 4.6.3). The peer is not asked for one: each end
    /// counts what it sends.
    private func updateKey() throws(TLSError) {
        ErrorQueue.clear()
        guard SSL_key_update(pointer, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 else {
            throw fail(ErrorQueue.libraryFailure("updating keys"))
        }
        keyUpdates += 1
        bytesUntilKeyUpdate = context.limits.keyUpdateInterval
    }

    /// Says farewell (close_notify): nothing can be written after it, reading goes on. Does nothing before the
    /// handshake is complete, where TLS knows no farewell, after an error, and a second time.
    package func shutdown() {
        guard isComplete, !isShutDown, failure == nil else { return }
        isShutDown = true
        ErrorQueue.clear()
        _ = SSL_shutdown(pointer)
        ErrorQueue.clear()
    }

    // MARK: - To the network

    /// Whether there is ciphertext to send.
    package var hasOutput: Bool { bio.output.count > 0 }

    /// How many bytes of ciphertext wait to be sent.
    package var pendingOutput: Int { bio.output.count }

    /// Moves ciphertext for the network into the buffer; returns how many bytes, 0 when there are none.
    package func nextOutput(into target: UnsafeMutableRawBufferPointer) -> Int {
        bio.output.take(into: target)
    }

    /// Shows the ciphertext that waits to the body, which says how much of it the network took: no copy.
    ///
    /// - Parameter send: Gets the oldest bytes, valid only during the call: not always all (the buffer is a ring),
    ///   never none. It must not call this session.
    /// - Returns: What the body took; 0 without calling it when nothing waits.
    package func sendOutput<Failure: Error>(
        _ send: (UnsafeRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        guard bio.output.count > 0 else { return 0 }
        let taken = try send(bio.output.front)
        bio.output.drop(taken)
        return taken
    }
}
