import BatonDocuments
import BatonEventLoop
import BatonProtocol
import BatonTransport

/// How the one budget for bytes that others make a node keep is divided.
///
/// What is counted: received bytes that nobody has read, by what was promised to their senders; documents that are read
/// ahead of who fetches them; and what continuation streams keep between the two that talk. Of every class a part is
/// reserved, so that devices which fill theirs stop neither this user's applications nor documents, and the reverse; what
/// is left goes to whoever comes first. Strangers get none of it (``NodeLimits/visitBytes`` bounds them).
///
/// It is the bound under attack. A transfer holds a fraction of it, one stream's window at the worst (8 MiB) and three
/// chunks, so that a node stays below 64 MiB in all, of which its libraries take 23.
struct BufferLimits: Sendable {
    /// What a class has for certain, and the most that it gets, in bytes.
    struct Part: Sendable {
        var reserved: Int
        var ceiling: Int
    }

    /// In all, in bytes. Default 64 MiB.
    var total = 64 << 20
    /// What other devices send. Reserved by default: 256 KiB for each of 32 connections and 16 handshakes. At most 40 MiB.
    var devices = Part(reserved: 12 << 20, ceiling: 40 << 20)
    /// What this user's applications send, which another program of his may be. Reserved by default: 64 KiB for each of
    /// 144 connections. At most 18 MiB.
    var applications = Part(reserved: 9 << 20, ceiling: 18 << 20)
    /// Documents on their way: see ``BatonDocuments/BufferPool``. Reserved by default: 15 buffers, of which one device can
    /// hold nine. At most 24 MiB.
    var documents = Part(reserved: 16 << 20, ceiling: 24 << 20)
    /// What waits in continuation streams for who reads slowly. By default 3 MiB, and at most 12.
    var streams = Part(reserved: 3 << 20, ceiling: 12 << 20)
}

/// The budget of a running node, in its parts.
struct NodeBudget: Sendable {
    let whole: ByteBudget
    let devices: ReceiveBudget
    let applications: ReceiveBudget
    let documents: BufferPool
    let streams: ByteBudget.Part

    init(_ limits: NodeLimits) {
        let whole = ByteBudget(bytes: limits.buffers.total)
        func part(_ part: BufferLimits.Part) -> ByteBudget.Part {
            whole.part(reserved: part.reserved, ceiling: part.ceiling)
        }
        func received(_ limits: BufferLimits.Part, connections: Int, _ windows: Limits) -> ReceiveBudget {
            ReceiveBudget(
                part: part(limits), connections: connections, initialWindow: windows.initialConnectionWindow,
                maximumWindow: windows.maximumConnectionWindow)
        }
        self.whole = whole
        devices = received(
            limits.buffers.devices, connections: limits.connections + limits.handshakes, limits.session)
        applications = received(limits.buffers.applications, connections: limits.localConnections, .local)
        documents = BufferPool(part: part(limits.buffers.documents))
        streams = part(limits.buffers.streams)
    }
}
