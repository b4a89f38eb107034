/// What a device of an account holds: its own identity and the account's shared keys, but not the account key.
public struct Account: Sendable {
    /// Which account, on this device only.
    public let id: AccountID

    /// This device's key and certificates.
    public let identity: DeviceIdentity

    /// The name this device shows to the account's other devices.
    public let deviceName: String

    /// The generation that is sealed and minted with; grows with each revocation.
    public let generation: UInt32

    /// The keys of the current generation and of the older ones that are known, newest first; never empty.
    public let keys: [GenerationKeys]

    /// The keys of the current generation.
    public var currentKeys: GenerationKeys { keys[0] }
}
