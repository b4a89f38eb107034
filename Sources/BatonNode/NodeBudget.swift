// SPDX-License-Identifier: Apache-2.0

import BatonCore
import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTransport

/// The division of the one budget for bytes that others make a node keep.
///
/// The budget counts:
/// - received bytes that nobody has read, by the credit that their senders got,
/// - requests, as they came and as they were read, and their answers, for as long as the streams live,
/// - documents that are read ahead of the device that fetches them, their entries, and the table of bytes that the
///   other side has,
/// - bytes that a continuation stream keeps between its two ends.
///
/// Each class has a reserved part, so that devices which fill theirs stop neither this user's applications nor
/// documents, and the reverse. The rest goes to the first that asks. Connections that are not admitted yet get none of
/// it (``NodeLimits/firstMessageBytes`` bounds them).
///
/// These constants come on top, each bounded in its own place:
/// - A connection takes at most 1 MiB for TLS, its states and the two buffers of its socket. There are 192
///   (``NodeLimits/links``, ``NodeLimits/localConnections``).
/// - A pending connection takes 100 KiB. There are 64 (``NodeLimits/pendingConnections``).
/// - An activity takes 72 KiB, of which its payload has at most 64. There are 64 offers (``NodeLimits/offers``) and 128
///   claims (`ClaimBounds.claims`).
/// - A payload that was read takes up to 640 KiB if it has as many values as it may. 32 handoffs have one
///   (``HandoffTable/bound``). They also keep 4 MiB of emptied buffers for their documents. The signatures of an older
///   copy take 1.25 MiB for a file, and 8 MiB for 65,536 files that are smaller than a piece.
/// - Each of 64 offers, 32 accepts and 31 watches keeps at most 64 KiB of records that its program does not read, and
///   1,024 small events. Of a failure that another device reports an event keeps 300 bytes; the last event keeps
///   1 KiB.
/// - The list of a device takes 1.5 KiB for each of 64 activities, while the device is announced.
///
/// NodeMemoryTests measured in a process of its own: 75 KiB for a connection without requests, 65 for a pending
/// connection, and 145 for an offer. A third of an offer is its request, which is in the budget. The other figures are
/// sums.
///
/// This is the bound under attack. A transfer holds a fraction of it: at most one stream's window (a little over 4 MiB)
/// and three chunks. So a node stays below 64 MiB in all, of which its libraries take 23.
struct BufferLimits: Sendable {
    /// The reserved bytes of a class, and its most bytes.
    struct Part: Sendable {
        var reserved: Int
        var ceiling: Int
    }

    /// In all, in bytes. Default 144 MiB, of which 114 are reserved.
    var total = 144 << 20
    /// Received from other devices. Reserved by default: 256 KiB for each of 32 connections and 16 handshakes. At most
    /// 40 MiB.
    var devices = Part(reserved: 12 << 20, ceiling: 40 << 20)
    /// Received from programs of this user. Reserved by default: 64 KiB for each of 144 connections. At most
    /// 18 MiB.
    var applications = Part(reserved: 9 << 20, ceiling: 18 << 20)
    /// Requests of other devices, and their answers. Reserved by default: 192 KiB for each of 32 connections and 16
    /// handshakes, which is one request and one answer of the greatest size. At most 18 MiB.
    var deviceRequests = Part(reserved: 9 << 20, ceiling: 18 << 20)
    /// The same of this user's applications. Reserved by default: 64 KiB for each of 144 connections. At most 24 MiB.
    var applicationRequests = Part(reserved: 9 << 20, ceiling: 24 << 20)
    /// Documents on their way: see ``BatonDocuments/BufferPool``. Reserved by default: 12 buffers, of which one device
    /// can hold nine (``NodeLimits/transfersPerDevice``). At most 22, which three devices can hold that stand still.
    var documents = Part(reserved: 13 << 20, ceiling: 23 << 20)
    /// Parts of documents that applications of other devices look at. They do not wait for devices that stand still
    /// with documents. Reserved by default: two buffers, half of what one device can hold. At most 8 MiB.
    var previews = Part(reserved: 3 << 20, ceiling: 8 << 20)
    /// Parts of documents that this user's applications read, one buffer for each read. They are apart from
    /// ``previews``, since two devices that read each other's documents could else wait for each other. Reserved by
    /// default: two buffers. At most 8 MiB.
    var reads = Part(reserved: 3 << 20, ceiling: 8 << 20)
    /// The entries of documents, while they are looked at, told, or held by a claim. The greatest document takes 31
    /// MiB. Each device gets half of the free bytes when it asks, and this user's applications together get as much as
    /// one device. By default 44 MiB, and at most 64.
    var descriptions = Part(reserved: 44 << 20, ceiling: 64 << 20)
    /// Tables of the bytes that the devices which fetch documents have already: two tables, and at most six
    /// (``BatonDocuments/SignatureIndex/memoryBound``). A document that finds no table is sent whole.
    var olderCopies = Part(reserved: 9 << 20, ceiling: 25 << 20)
    /// Bytes in continuation streams that wait for a slow reader. By default 3 MiB, and at most 12.
    var streams = Part(reserved: 3 << 20, ceiling: 12 << 20)
}

/// The budget of a running node, in its parts.
struct NodeBudget: Sendable {
    let whole: ByteBudget
    let devices: ReceiveBudget
    let applications: ReceiveBudget
    let documents: BufferPool
    let previews: BufferPool
    let reads: BufferPool
    let descriptions: SharedPart
    let olderCopies: SharedPart
    let streams: ByteBudget.Part

    init(_ limits: NodeLimits) {
        let whole = ByteBudget(bytes: limits.buffers.total)
        func part(_ part: BufferLimits.Part) -> ByteBudget.Part {
            whole.part(reserved: part.reserved, ceiling: part.ceiling)
        }
        func received(
            _ bytes: BufferLimits.Part, _ requests: BufferLimits.Part, connections: Int, _ windows: Limits
        ) -> ReceiveBudget {
            ReceiveBudget(
                part: part(bytes), connections: connections, initialWindow: windows.initialConnectionWindow,
                maximumWindow: windows.maximumConnectionWindow, requests: part(requests))
        }
        self.whole = whole
        devices = received(
            limits.buffers.devices, limits.buffers.deviceRequests,
            connections: limits.links.connections + limits.links.handshakes, limits.session)
        applications = received(
            limits.buffers.applications, limits.buffers.applicationRequests, connections: limits.localConnections,
            .local)
        documents = BufferPool(part: part(limits.buffers.documents))
        previews = BufferPool(part: part(limits.buffers.previews))
        reads = BufferPool(part: part(limits.buffers.reads))
        descriptions = SharedPart(part(limits.buffers.descriptions))
        olderCopies = SharedPart(part(limits.buffers.olderCopies))
        streams = part(limits.buffers.streams)
    }
}
