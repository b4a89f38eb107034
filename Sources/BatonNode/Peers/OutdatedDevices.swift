import BatonAccount
import BatonEventLoop
import BatonProtocol

/// Devices that are not known here and seal with keys of an older generation: who slept through a revocation and is met
/// for the first time; and who was revoked, has these keys for good, and makes himself a new identity with them.
///
/// A pure value, told the time. An advertisement does not tell the one from the other, the certificate of a connection
/// does. So what they say counts for nothing but the dial that lets the first kind catch up, and few have their turn at a
/// time: they are not listed, not remembered, and take nobody's place.
struct OutdatedDevices {
    /// Those that may be dialled at a time.
    static var bound: Int { 4 }
    /// How long each has for it before another may.
    static var turn: Duration { .seconds(20) }

    private var table: PeerTable
    private var admitted: [DeviceID: Instant] = [:]

    init(keys: GenerationKeys) {
        table = PeerTable(keys: keys)
    }

    subscript(device: DeviceID) -> Peer? { table.peers[device] }

    /// Takes an advertisement that was opened with older keys.
    ///
    /// - Returns: whether it is the device's turn.
    mutating func receive(
        _ advertisement: Advertisement, keys: GenerationKeys, instance: String, interface: UInt32, now: Instant,
        unixTime: UInt64
    ) -> Bool {
        for (device, since) in admitted where now - since >= Self.turn { remove(device) }
        if admitted[advertisement.device] == nil {
            guard admitted.count < Self.bound else { return false }
            admitted[advertisement.device] = now
        }
        table.receive(
            advertisement, keys: keys, isOutdated: true, instance: instance, interface: interface, now: now,
            unixTime: unixTime)
        return true
    }

    /// It is known by now, or of the account no more.
    mutating func remove(_ device: DeviceID) {
        admitted[device] = nil
        table.remove(device: device)
    }
}
