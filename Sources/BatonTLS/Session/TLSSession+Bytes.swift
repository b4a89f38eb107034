// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// The bytes of a session: ciphertext for the network, plaintext for the owner.
extension TLSSession {
    // MARK: - From the network

    /// Takes ciphertext from the network: all of it, or none.
    ///
    /// This copies. ``receive(_:into:deliver:)`` decrypts straight from the caller's bytes instead.
    ///
    /// - Throws: `bufferFull` if it does not fit: read first. The error that ended the session.
    package func receive(_ ciphertext: UnsafeRawBufferPointer) throws(TLSError) {
        if let failure { throw failure }
        guard bio.input.append(ciphertext) else {
            throw TLSError(.bufferFull, "More ciphertext waits to be read than the limit allows.")
        }
    }

    /// Takes ciphertext and delivers its plaintext: the fast way for bulk data, without a copy into the session's
    /// buffer. The rest (an incomplete record, or everything after a stop) is kept, as by ``receive(_:)``.
    ///
    /// - Parameters:
    ///   - ciphertext: bytes from the network; may be empty, to continue after a stop.
    ///   - destination: the final place of the next plaintext, not empty. Asked for each piece.
    ///   - deliver: gets a piece of plaintext, as much as fits or is there, valid only during the call. It returns
    ///     whether to continue. It must not call this session's `receive` or `read`; `write` is allowed.
    /// - Returns: `.incomplete` after everything was delivered, `.closed` after the peer's close_notify, `.bytes(0)`
    ///   after a stop.
    /// - Throws: as ``receive(_:)`` and ``read(into:)``; pieces that were delivered before are valid.
    package func receive(
        _ ciphertext: UnsafeRawBufferPointer, into destination: () -> UnsafeMutableRawBufferPointer,
        deliver: (UnsafeRawBufferPointer) -> Bool
    ) throws(TLSError) -> ReadResult {
        if let failure { throw failure }
        guard ciphertext.count <= bio.input.freeSpace else {
            throw TLSError(.bufferFull, "More ciphertext waits to be read than the limit allows.")
        }
        bio.lentInput = ciphertext
        defer {
            // It fits, as was checked above.
            _ = bio.input.append(bio.lentInput)
            bio.lentInput = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        while true {
            let target = destination()
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

    /// Ends the input: no more bytes will come from the network.
    ///
    /// Received bytes can still be read. Then reading returns `.closed` if the peer has sent close_notify, and throws
    /// `truncated` otherwise.
    package func receiveEnd() {
        bio.hasEnded = true
    }

    // MARK: - To the owner

    /// Decrypts at most one record into the front of the buffer. Continues the handshake first if it is incomplete.
    ///
    /// - Returns: `.bytes` with at least 1, unless the buffer is empty.
    /// - Throws: `protocolViolation`, `truncated`, and alerts of the peer. The type's description lists the alerts by
    ///   which a client learns that it was refused.
    package func read(into target: UnsafeMutableRawBufferPointer) throws(TLSError) -> ReadResult {
        guard try handshake() else { return .incomplete }
        guard let base = target.baseAddress, !target.isEmpty else { return .bytes(0) }
        var count = 0
        ErrorQueue.clear()
        let result = SSL_read_ex(pointer, base, target.count, &count)
        if result == 1 {
            countData(count)
            return .bytes(count)
        }
        if SSL_get_error(pointer, result) == SSL_ERROR_ZERO_RETURN { return .closed }
        try throwUnlessInputNeeded(result)
        return .incomplete
    }

    /// Counts data, which allows further handshake messages (``TLSLimits/postHandshakeMessages``).
    private func countData(_ count: Int) {
        dataSinceAllowance += count
        let records = dataSinceAllowance / TLSLimits.recordPayload
        guard records > 0 else { return }
        dataSinceAllowance %= TLSLimits.recordPayload
        let limit = context.limits.postHandshakeMessages
        postHandshakeMessages += min(records, limit - postHandshakeMessages)
    }

    // MARK: - From the owner

    /// The number of bytes of plaintext that ``write(_:)`` takes now, up to ``TLSLimits/bufferedOutput``. It counts
    /// whole records, so that small rests do not become small records.
    var writableBytes: Int {
        guard isComplete, !isShutDown, failure == nil else { return 0 }
        let records = (TLSLimits.bufferedOutput - bio.output.count) / TLSLimits.maximumRecord
        return max(0, records) * TLSLimits.recordPayload
    }

    /// Encrypts all of the plaintext, in records of 16 KiB, or nothing.
    ///
    /// Use large pieces, because each call ends a record. It replaces the sending key every 64 GiB.
    ///
    /// - Throws: `notReady` before the handshake is complete and after ``shutdown()``; `bufferFull` if the plaintext is
    ///   larger than ``writableBytes``: send first. Neither ends the session. The error that ended the session.
    package func write(_ plaintext: UnsafeRawBufferPointer) throws(TLSError) {
        if let failure { throw failure }
        guard isComplete, !isShutDown else {
            throw TLSError(.notReady, "Nothing can be written before the handshake or after close_notify.")
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
                // A write that wants to read: the peer has left a handshake message unfinished between its data. TLS
                // allows that and no implementation does it. If this side waited, its writing would depend on the peer.
                try throwUnlessInputNeeded(result)
                throw fail(TLSError(.protocolViolation, "The peer left a handshake message unfinished."))
            }
            let used = UInt64((written - 1) / TLSLimits.recordPayload + 1) * payload
            bytesUntilKeyUpdate -= min(used, bytesUntilKeyUpdate)
            rest = rest.dropFirst(written)
        }
    }

    /// Encrypts all of the plaintext, as ``write(_:)``, straight into the next bytes for the network: the fast way for
    /// bulk data, without a copy through the session's buffer. The rest is kept, as by ``write(_:)``.
    ///
    /// - Parameters:
    ///   - wire: the place for ciphertext, after bytes that wait already.
    ///   - count: raised by the number of bytes stored there, also if it throws.
    /// - Throws: as ``write(_:)``.
    package func write(
        _ plaintext: UnsafeRawBufferPointer, into wire: UnsafeMutableRawBufferPointer, count: inout Int
    ) throws(TLSError) {
        let waiting = nextOutput(into: wire)
        bio.lentOutput = UnsafeMutableRawBufferPointer(rebasing: wire[waiting...])
        defer {
            count += wire.count - bio.lentOutput.count + nextOutput(into: bio.lentOutput)
            bio.lentOutput = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        }
        try write(plaintext)
    }

    /// Sends a KeyUpdate before the next record (RFC 8446, section 4.6.3). It requests none from the peer: each end
    /// counts its own bytes.
    private func updateKey() throws(TLSError) {
        ErrorQueue.clear()
        guard SSL_key_update(pointer, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 else {
            throw fail(ErrorQueue.libraryFailure("updating keys"))
        }
        keyUpdates += 1
        bytesUntilKeyUpdate = context.limits.keyUpdateInterval
    }

    /// Sends close_notify: nothing can be written after it, and reading continues. Does nothing before the handshake is
    /// complete, when TLS has no close_notify, after an error, and a second time.
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

    /// Moves ciphertext for the network into the buffer. Returns the number of bytes, 0 if there are none.
    package func nextOutput(into target: UnsafeMutableRawBufferPointer) -> Int {
        bio.output.read(into: target)
    }
}
