// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTransport

/// How the one budget for bytes that others make a node keep is divided.
///
/// What is counted: received bytes that nobody has read, by what was promised to their senders; what is asked, as it
/// came and as it was read, and what it is answered, for as long as the streams live; documents that are read ahead of
/// who fetches them, what is in them, and which of their bytes the other side has; and what continuation streams keep
/// between the two that talk. Of every class a part is reserved, so that devices which fill theirs stop neither this
/// user's applications nor documents, and the reverse; what is left goes to whoever comes first. Connections that are
/// not admitted yet get none of it (``NodeLimits/firstMessageBytes`` bounds them).
///
/// Beside it stand constants, each where it is bounded. A connection takes at the worst 1 MiB for TLS, its states and
/// the two buffers of its socket (``NodeLimits/connections``, ``NodeLimits/handshakes``,
/// ``NodeLimits/localConnections``: 192 of them); a pending connection 100 KiB (``NodeLimits/pendingConnections``: 64).
/// Activities have a payload of at most 64 KiB, which is kept as it travels, in 72 KiB with what belongs to it: 64 that
/// are offered (``NodeLimits/offers``) and 128 that are claimed (`ClaimBounds.claims`; one that is offered as well
/// takes no more by that). Read, it takes up to 640 KiB, where it is made of as many values as there is room for: so it
/// is kept by the 32 that are being taken over (``HandoffTable/bound``), which keep 4 MiB of emptied buffers for their
/// documents as well, and of an older copy that a document is built upon the signatures: 1.25 MiB of a file, 8 of
/// 65,536 files that are smaller than a piece. What programs are told and do not read, of 64 offers, 32 accepts and 31
/// watches, is 64 KiB of records each and at most 1,024 small events, which tell of a failure that another device
/// writes at most 300 bytes of its sentence; only the last one has 1 KiB. What a device lists is kept while it is
/// announced, 64 activities of 1.5 KiB each.
///
/// Connections, pending connections and offers were measured in a process of their own (NodeMemoryTests): 75 KiB for a
/// connection on which nothing is asked, 65 for a pending connection, 145 for an offer, a third of which is its request
/// as it came and is in the budget. The rest are sums.
///
/// It is the bound under attack. A transfer holds a fraction of it, one stream's window at the worst (a little over 6
/// MiB) and three chunks, so that a node stays below 64 MiB in all, of which its libraries take 23.
struct BufferLimits: Sendable {
    /// What a class has for certain, and the most that it gets, in bytes.
    struct Part: Sendable {
        var reserved: Int
        var ceiling: Int
    }

    /// In all, in bytes. Default 144 MiB, of which 115 are reserved.
    var total = 144 << 20
    /// What other devices send. Reserved by default: 256 KiB for each of 32 connections and 16 handshakes. At most 40
    /// MiB.
    var devices = Part(reserved: 12 << 20, ceiling: 40 << 20)
    /// What this user's applications send, which another program of his may be. Reserved by default: 64 KiB for each of
    /// 144 connections. At most 18 MiB.
    var applications = Part(reserved: 9 << 20, ceiling: 18 << 20)
    /// What other devices ask and are answered. Reserved by default: 192 KiB for each of 32 connections and 16
    /// handshakes, which is one request and one answer of the greatest size. At most 18 MiB.
    var deviceRequests = Part(reserved: 9 << 20, ceiling: 18 << 20)
    /// The same of this user's applications. Reserved by default: 64 KiB for each of 144 connections. At most 24 MiB.
    var applicationRequests = Part(reserved: 9 << 20, ceiling: 24 << 20)
    /// Documents on their way: see ``BatonDocuments/BufferPool``. Reserved by default: 12 buffers, of which one device
    /// can hold nine (``NodeLimits/transfersPerDevice``). At most 22, which three devices can hold that stand still.
    var documents = Part(reserved: 13 << 20, ceiling: 23 << 20)
    /// What applications of other devices look at of documents: whoever waits for it does not wait for devices that
    /// stand still with documents. Reserved by default: two buffers, which is what one device can hold. At most 8 MiB.
    var previews = Part(reserved: 3 << 20, ceiling: 8 << 20)
    /// What this user's applications read of documents, one buffer for each read. Not the same as ``previews``: of two
    /// devices that read each other's documents, each could wait for what the other one has to send. Reserved by
    /// default: two buffers. At most 8 MiB.
    var reads = Part(reserved: 3 << 20, ceiling: 8 << 20)
    /// What is in documents, while it is looked at, told, or held by a claim: the greatest takes 28 MiB. Each device
    /// has half of what there is when it asks, this user's applications together as much as one device. By default 44
    /// MiB, and at most 64.
    var descriptions = Part(reserved: 44 << 20, ceiling: 64 << 20)
    /// Which bytes of documents the devices that fetch them have already: four tables, and at most six
    /// (``BatonDocuments/SignatureIndex/memoryBound``). A document for which there is none is sent whole.
    var olderCopies = Part(reserved: 10 << 20, ceiling: 15 << 20)
    /// What waits in continuation streams for who reads slowly. By default 3 MiB, and at most 12.
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
            limits.buffers.devices, limits.buffers.deviceRequests, connections: limits.connections + limits.handshakes,
            limits.session)
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
