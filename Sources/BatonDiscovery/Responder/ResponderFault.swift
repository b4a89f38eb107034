// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CDNSSD
import Glibc

/// A `dns_sd` call that failed, or a reference that failed later.
struct ResponderFault: Error, Hashable {
    /// The operation that failed, as in "cannot ...".
    var operation: String
    /// A `kDNSServiceErr_` number. Avahi's compatibility library maps most of its own reasons to "unknown".
    var code: Int32

    /// Whether the daemon or the bus is missing. The library has no other word for that than "unknown".
    var isOfAbsence: Bool { Int(code) == Int(kDNSServiceErr_Unknown) }

    /// Returns a sentence for people that says what does not work and what to do about it.
    ///
    /// The library cannot say whether the daemon or the bus is missing, so this connects to the system bus.
    func explanation() -> String {
        switch Int(code) {
        case Int(kDNSServiceErr_Unknown):
            if let path = SystemBus.unreachablePath() {
                return "The D-Bus system bus does not answer at \(path): install and start dbus."
            }
            return "Avahi is not running: install and start avahi-daemon."
        case Int(kDNSServiceErr_NotInitialized):
            return "Avahi's library libdns_sd.so.1 is not installed: install libavahi-compat-libdnssd1."
        case Int(kDNSServiceErr_Refused):
            return "Avahi refused to \(operation): too many services or connections, or a D-Bus policy forbids it."
        default:
            return "Avahi cannot \(operation) (DNS-SD error \(code))."
        }
    }
}

/// The D-Bus system bus.
package enum SystemBus {
    /// Returns the path of its socket if no process accepts connections there. Nil if one does, or if the address is
    /// not a path.
    package static func unreachablePath() -> String? {
        let address = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) }
        // The default of libdbus on Linux; an address is "unix:path=PATH,key=value;another address".
        let path: Substring
        if let address {
            guard address.hasPrefix("unix:path=") else { return nil }
            path = address.dropFirst("unix:path=".count).prefix { $0 != "," && $0 != ";" }
        } else {
            path = "/run/dbus/system_bus_socket"
        }
        return accepts(path) ? nil : String(path)
    }

    private static func accepts(_ path: Substring) -> Bool {
        guard let address = SocketAddress(String(path)) else { return true }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        return (try? address.withSystemAddress { connect(descriptor, $0, $1) == 0 }) ?? true
    }
}
