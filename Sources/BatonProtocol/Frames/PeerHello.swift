// SPDX-License-Identifier: Apache-2.0

/// The content of a HELLO: versions, limits and first credit. It carries no identity.
///
/// The layout is fixed (<doc:FramesAndStreams>). Bytes behind the known fields belong to later versions and
/// are ignored.
package struct PeerHello: Sendable, Hashable {
    /// The four bytes that start every HELLO: `BATN`.
    static let magic: UInt32 = 0x4241_544E
    /// Bytes of the fields known to version 1.
    static let size = 56
    /// The largest HELLO payload, with appended fields, in bytes.
    static let maximumSize = 4096
    /// The version this module speaks, highest and lowest at once.
    static let spokenVersion: UInt16 = 1
    /// The largest offset that any credit may name. Sums of offsets never overflow below it.
    static let maximumOffset: UInt64 = 1 << 62

    /// The highest protocol version the sender speaks.
    package var version: UInt16 = spokenVersion
    /// The lowest protocol version the sender speaks.
    package var minimumVersion: UInt16 = spokenVersion
    /// The number of the account's revocation list that the sender holds; 0 if there is none (local socket).
    package var revocationNumber: UInt64
    /// The largest DATA payload the sender of the HELLO accepts, in bytes; at least 16 KiB.
    package var dataFrameBytes: UInt32
    /// The number of streams that the receiver of the HELLO may have open at a time; an acceptor grants at least 8.
    package var openStreams: UInt32
    /// The number of requests that the receiver of the HELLO may have unanswered at a time; an acceptor grants at least
    /// 8.
    package var unansweredRequests: UInt32
    /// The credit of the connection at its start, in bytes.
    package var connectionCredit: UInt64
    /// The credit of every stream at its start, in bytes.
    package var streamCredit: UInt64

    /// The hello of a session with these limits.
    init(limits: Limits, revocationNumber: UInt64) {
        self.revocationNumber = revocationNumber
        dataFrameBytes = UInt32(limits.dataFrameBytes)
        openStreams = UInt32(limits.openStreams)
        unansweredRequests = UInt32(limits.unansweredRequests)
        connectionCredit = UInt64(limits.initialConnectionWindow)
        streamCredit = UInt64(limits.initialStreamWindow)
    }

    /// Reads the payload of a HELLO sent by `sender`.
    ///
    /// - Throws: `notBaton`, `helloMalformed`, `peerTooOld`, `peerTooNew` or `helloLimits`.
    init(_ payload: UnsafeRawBufferPointer, from sender: Role) throws(ConnectionError) {
        guard payload.count >= 4, let base = payload.baseAddress,
            base.loadBigEndian(at: 0, as: UInt32.self) == Self.magic
        else { throw .notBaton }
        // Every later version has its version numbers right behind the magic. So they are checked before the length.
        guard payload.count >= 8 else { throw .helloMalformed }
        version = base.loadBigEndian(at: 4, as: UInt16.self)
        minimumVersion = base.loadBigEndian(at: 6, as: UInt16.self)
        guard minimumVersion <= version else { throw .helloMalformed }
        guard version >= Self.spokenVersion else { throw .peerTooOld(version) }
        guard minimumVersion <= Self.spokenVersion else { throw .peerTooNew(minimumVersion) }
        guard payload.count >= Self.size else { throw .helloMalformed }
        // Offset 8 holds eight bytes of feature bits, of which this version has none.
        revocationNumber = base.loadBigEndian(at: 16, as: UInt64.self)
        dataFrameBytes = base.loadBigEndian(at: 24, as: UInt32.self)
        openStreams = base.loadBigEndian(at: 28, as: UInt32.self)
        unansweredRequests = base.loadBigEndian(at: 32, as: UInt32.self)
        // Offset 36 holds four reserved bytes, so that what follows is aligned.
        connectionCredit = base.loadBigEndian(at: 40, as: UInt64.self)
        streamCredit = base.loadBigEndian(at: 48, as: UInt64.self)

        guard dataFrameBytes >= UInt32(Limits.leastDataFrameBytes),
            connectionCredit <= Self.maximumOffset, streamCredit <= Self.maximumOffset
        else { throw .helloLimits }
        // The dialer may already have used this much before the acceptor's HELLO reached it.
        let least = sender == .acceptor ? UInt32(Limits.streamsBeforeHello) : 0
        guard openStreams >= least, unansweredRequests >= least else { throw .helloLimits }
    }

    /// Writes the payload (`size` bytes) at `pointer`.
    func write(to pointer: UnsafeMutableRawPointer) {
        pointer.storeBigEndian(Self.magic, at: 0)
        pointer.storeBigEndian(version, at: 4)
        pointer.storeBigEndian(minimumVersion, at: 6)
        pointer.storeBigEndian(UInt64(0), at: 8)
        pointer.storeBigEndian(revocationNumber, at: 16)
        pointer.storeBigEndian(dataFrameBytes, at: 24)
        pointer.storeBigEndian(openStreams, at: 28)
        pointer.storeBigEndian(unansweredRequests, at: 32)
        pointer.storeBigEndian(UInt32(0), at: 36)
        pointer.storeBigEndian(connectionCredit, at: 40)
        pointer.storeBigEndian(streamCredit, at: 48)
    }
}
