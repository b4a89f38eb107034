// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import Testing

@testable import BatonCore

@Suite("Pinned instances")
struct PinnedInstancesTests {
    private let devices = [DeviceID(number: 1001), DeviceID(number: 1002)]

    private func proved(_ device: DeviceID) -> Bool { true }

    @Test("A device has so many, and the one that was first longest ago makes room")
    func bounded() {
        var pinned = PinnedInstances()
        #expect(pinned.add("elsewhere", of: devices[1], isProved: proved) == nil)
        for number in 0..<PinnedInstances.boundPerDevice {
            #expect(pinned.add("\(number)", of: devices[0], isProved: proved) == nil)
        }
        // Instance 0 is first again, so another one was first longest ago.
        #expect(pinned.add("0", of: devices[0], isProved: proved) == nil)
        #expect(pinned.add("new", of: devices[0], isProved: proved) == "1")
        #expect(pinned.contains("0") && pinned.contains("new") && !pinned.contains("1"))
        #expect(pinned.contains("elsewhere"))
    }

    @Test("An instance that has gone makes room, and one that is of another device now is of that one alone")
    func leaving() {
        var pinned = PinnedInstances()
        for number in 0..<PinnedInstances.boundPerDevice {
            _ = pinned.add("\(number)", of: devices[0], isProved: proved)
        }
        pinned.remove("2")
        #expect(!pinned.contains("2") && pinned.add("new", of: devices[0], isProved: proved) == nil)
        #expect(pinned.add("new", of: devices[1], isProved: proved) == nil)
        #expect(pinned.add("another", of: devices[0], isProved: proved) == nil)
    }

    @Test("Of instances that have gone it is known whose they were: of so many of a device, and of so many in all")
    func gone() {
        var pinned = PinnedInstances()
        func goAway(_ name: String, of device: DeviceID) {
            _ = pinned.add(name, of: device, isProved: proved)
            pinned.remove(name)
        }
        pinned.remove("never there")
        #expect(pinned.device(of: "never there") == nil)
        for number in 0...PinnedInstances.boundPerDevice { goAway("\(number)", of: devices[0]) }
        #expect(pinned.device(of: "0") == nil)
        #expect(pinned.device(of: "1") == devices[0] && !pinned.contains("1"))
        _ = pinned.add("1", of: devices[1], isProved: proved)
        #expect(pinned.device(of: "1") == devices[1] && pinned.contains("1"))
        let others = (1..<PinnedInstances.boundGone).map(DeviceID.init(number:))
        for (number, other) in others.enumerated() { goAway("other \(number)", of: other) }
        #expect(pinned.device(of: "other 0") == others[0] && pinned.device(of: "4") == devices[0])
        goAway("last", of: devices[1])
        #expect(pinned.device(of: "4") == nil && pinned.device(of: "other 0") == others[0])
    }

    @Test("An instance that has gone comes back where it shows its own device, and displaces no other")
    func comingBack() {
        var pinned = PinnedInstances()
        func restore(_ name: String, of device: DeviceID) -> Bool {
            pinned.restore(name, of: device, isProved: proved)
        }
        #expect(!restore("0", of: devices[0]))
        _ = pinned.add("0", of: devices[0], isProved: proved)
        pinned.remove("0")
        #expect(!restore("0", of: devices[1]) && !pinned.contains("0"))
        #expect(restore("0", of: devices[0]) && pinned.contains("0"))
        pinned.remove("0")
        for number in 1...PinnedInstances.boundPerDevice {
            _ = pinned.add("\(number)", of: devices[0], isProved: proved)
        }
        #expect(!restore("0", of: devices[0]) && !pinned.contains("0") && pinned.contains("1"))
        #expect(pinned.device(of: "0") == devices[0])
        pinned.remove("1")
        #expect(restore("0", of: devices[0]) && pinned.contains("0"))
    }

    @Test("Devices that no connection has shown have so many together, and take none from those that one has")
    func unproved() {
        var pinned = PinnedInstances()
        let honest = devices[0]
        func isProved(_ device: DeviceID) -> Bool { device == honest }
        #expect(pinned.add("honest", of: honest, isProved: isProved) == nil)
        let displaced = (0..<300).compactMap { number in
            pinned.add("\(number)", of: DeviceID(number: number), isProved: isProved)
        }
        #expect(displaced == (0..<300 - PinnedInstances.boundUnproved).map { "\($0)" })
        #expect(pinned.contains("honest") && pinned.contains("299") && !pinned.contains("0"))
        // Its next name has a place as well.
        #expect(pinned.add("next", of: honest, isProved: isProved) == nil)
    }
}
