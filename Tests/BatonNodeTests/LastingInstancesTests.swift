// SPDX-License-Identifier: Apache-2.0

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

    @Test("Of instances that have gone it is known whose they were: of so many of a device, and of so many in all")
    func gone() {
        var lasting = LastingInstances()
        func goAway(_ name: String, of device: DeviceID) {
            _ = lasting.add(name, of: device, isProved: proved)
            lasting.remove(name)
        }
        lasting.remove("never there")
        #expect(lasting.device(of: "never there") == nil)
        for number in 0...LastingInstances.boundPerDevice { goAway("\(number)", of: devices[0]) }
        #expect(lasting.device(of: "0") == nil)
        #expect(lasting.device(of: "1") == devices[0] && !lasting.contains("1"))
        _ = lasting.add("1", of: devices[1], isProved: proved)
        #expect(lasting.device(of: "1") == devices[1] && lasting.contains("1"))
        let others = (1..<LastingInstances.boundGone).map { number in
            DeviceID(ed25519PublicKey: (0..<32).map { UInt8(truncatingIfNeeded: $0 * number) })
        }
        for (number, other) in others.enumerated() { goAway("other \(number)", of: other) }
        #expect(lasting.device(of: "other 0") == others[0] && lasting.device(of: "4") == devices[0])
        goAway("last", of: devices[1])
        #expect(lasting.device(of: "4") == nil && lasting.device(of: "other 0") == others[0])
    }

    @Test("An instance that has gone comes back where it shows its own device, and displaces no other")
    func comingBack() {
        var lasting = LastingInstances()
        func comeBack(_ name: String, of device: DeviceID) -> Bool {
            lasting.comeBack(name, of: device, isProved: proved)
        }
        #expect(!comeBack("0", of: devices[0]))
        _ = lasting.add("0", of: devices[0], isProved: proved)
        lasting.remove("0")
        #expect(!comeBack("0", of: devices[1]) && !lasting.contains("0"))
        #expect(comeBack("0", of: devices[0]) && lasting.contains("0"))
        lasting.remove("0")
        for number in 1...LastingInstances.boundPerDevice {
            _ = lasting.add("\(number)", of: devices[0], isProved: proved)
        }
        #expect(!comeBack("0", of: devices[0]) && !lasting.contains("0") && lasting.contains("1"))
        #expect(lasting.device(of: "0") == devices[0])
        lasting.remove("1")
        #expect(comeBack("0", of: devices[0]) && lasting.contains("0"))
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
