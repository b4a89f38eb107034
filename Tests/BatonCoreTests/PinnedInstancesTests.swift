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

    @Test("An instance that is of another device now is of that one alone")
    func leaving() {
        var pinned = PinnedInstances()
        for number in 0..<PinnedInstances.boundPerDevice {
            _ = pinned.add("\(number)", of: devices[0], isProved: proved)
        }
        #expect(pinned.add("2", of: devices[1], isProved: proved) == nil)
        #expect(pinned.device(of: "2") == devices[1] && pinned.device(of: "1") == devices[0])
        #expect(pinned.add("another", of: devices[0], isProved: proved) == nil)
        #expect(pinned.device(of: "never there") == nil)
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
