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

    @Test("A device has so many, and the one that was first longest ago makes room")
    func bounded() {
        var lasting = LastingInstances()
        #expect(lasting.add("elsewhere", of: devices[1]) == nil)
        for number in 0..<LastingInstances.boundPerDevice { #expect(lasting.add("\(number)", of: devices[0]) == nil) }
        // First again: it is no longer the one that was first longest ago.
        #expect(lasting.add("0", of: devices[0]) == nil)
        #expect(lasting.add("new", of: devices[0]) == "1")
        #expect(lasting.contains("0") && lasting.contains("new") && !lasting.contains("1"))
        #expect(lasting.contains("elsewhere"))
    }

    @Test("An instance that has gone makes room, and one that is of another device now is of that one alone")
    func leaving() {
        var lasting = LastingInstances()
        for number in 0..<LastingInstances.boundPerDevice { _ = lasting.add("\(number)", of: devices[0]) }
        lasting.remove("2")
        #expect(!lasting.contains("2") && lasting.add("new", of: devices[0]) == nil)
        #expect(lasting.add("new", of: devices[1]) == nil)
        #expect(lasting.add("another", of: devices[0]) == nil)
    }
}
