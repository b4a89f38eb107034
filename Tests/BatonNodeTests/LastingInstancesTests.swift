import BatonAccount
import BatonTestSupport
import Testing

@testable import BatonNode

@Suite("Instances with a lasting query")
struct LastingInstancesTests {
    private let devices: [DeviceID]

    init() throws {
        devices = try TestAccount(devices: 2).devices.map(\.id)
    }

    private func proved(_ device: DeviceID) -> Bool { true }

    @Test("A device has so many, and the one that was first longest ago makes room")
    func bounded() {
        var lasting = LastingInstances()
        #expect(lasting.add("elsewhere", of: devices[1], isProved: proved) == nil)
        for number in 0..<LastingInstances.boundPerDevice {
            #expect(lasting.add("\(number)", of: devices[0], isProved: proved) == nil)
        }
        // First again: it is no longer the one that was first longest ago.
        #expect(lasting.add("0", of: devices[0], isProved: proved) == nil)
        #expect(lasting.add("new", of: devices[0], isProved: proved) == "1")
        #expect(lasting.contains("0") && lasting.contains("new") && !lasting.contains("1"))
        #expect(lasting.contains("elsewhere"))
    }

    @Test("An instance that has gone makes room, and one that is of another device now is of that one alone")
    func leaving() {
        var lasting = LastingInstances()
        for number in 0..<LastingInstances.boundPerDevice {
            _ = lasting.add("\(number)", of: devices[0], isProved: proved)
        }
        lasting.remove("2")
        #expect(!lasting.contains("2") && lasting.add("new", of: devices[0], isProved: proved) == nil)
        #expect(lasting.add("new", of: devices[1], isProved: proved) == nil)
        #expect(lasting.add("another", of: devices[0], isProved: proved) == nil)
    }

    @Test("Devices that no connection has shown have so many together, and take none from those that one has")
    func unproved() {
        var lasting = LastingInstances()
        let honest = devices[0]
        func isProved(_ device: DeviceID) -> Bool { device == honest }
        #expect(lasting.add("honest", of: honest, isProved: isProved) == nil)
        let displaced = (0..<300).compactMap { number in
            let invented = DeviceID(ed25519PublicKey: (0..<32).map { _ in UInt8.random(in: 0...255) })
            return lasting.add("\(number)", of: invented, isProved: isProved)
        }
        #expect(displaced == (0..<300 - LastingInstances.boundUnproved).map { "\($0)" })
        #expect(lasting.contains("honest") && lasting.contains("299") && !lasting.contains("0"))
        // Its next name has a place as well.
        #expect(lasting.add("next", of: honest, isProved: isProved) == nil)
    }
}
