// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import CDNSSD
import Glibc

/// Avahi's libdns_sd, loaded when the first reference is made; see CDNSSD for why it is not linked.
private struct ResponderLibrary: @unchecked Sendable {  // reason: functions, never changed after they were loaded
    let functions: cdnssd

    /// The code of a ``ResponderFault`` when the library is not installed.
    static let missing = Int32(kDNSServiceErr_NotInitialized)

    private static let loaded = Lock<ResponderLibrary?>(nil)

    /// The library of this process; nil if it is not installed. It may be installed later.
    static var shared: ResponderLibrary? {
        loaded.withLock { library in
            var functions = cdnssd()
            if library == nil, cdnssd_load(&functions) != 0 { library = ResponderLibrary(functions: functions) }
            return library
        }
    }
}

/// One `DNSServiceRef`: a registration, a browse or a query. Owns it and ends it exactly once.
///
/// Every method may block on D-Bus, for 25 s if the daemon hangs, and no two methods of one reference may run at once.
/// So all of them belong on one ``BlockingExecutor``.
///
/// The library's callbacks run inside ``process()``. They only store what they are told, because ending a reference
/// inside its own callback frees memory that the library is about to use.
final class ServiceReference {
    /// An answer of the library.
    enum Reply {
        /// A registration is complete, under this name.
        case registered(name: String)
        /// An instance appeared or disappeared on an interface, in one address family.
        case instance(name: String, domain: String, interfaceIndex: UInt32, isAdded: Bool)
        /// A TXT record appeared or disappeared on an interface, in one address family.
        case text([UInt8], interfaceIndex: UInt32, isAdded: Bool)
        /// The reference failed and gives no more replies.
        case failed(ResponderFault)
    }

    /// The replies of callbacks. A class, because the library keeps its address.
    fileprivate final class Mailbox {
        var replies: [Reply] = []
        let operation: String
        init(operation: String) { self.operation = operation }
    }

    private let mailbox: Mailbox
    private let library: cdnssd
    private var reference: DNSServiceRef?

    /// The descriptor to watch for readability before ``process()``. The reference owns it.
    let descriptor: Int32

    private init(
        _ operation: String, _ call: (cdnssd, inout DNSServiceRef?, UnsafeMutableRawPointer) -> DNSServiceErrorType
    ) throws(ResponderFault) {
        guard let library = ResponderLibrary.shared?.functions else {
            throw ResponderFault(operation: operation, code: ResponderLibrary.missing)
        }
        self.library = library
        mailbox = Mailbox(operation: operation)
        var reference: DNSServiceRef?
        let code = call(library, &reference, Unmanaged.passUnretained(mailbox).toOpaque())
        guard code == Int32(kDNSServiceErr_NoError), let reference else {
            throw ResponderFault(operation: operation, code: code)
        }
        self.reference = reference
        descriptor = library.descriptor(reference)
        // The library does not set it. A program that the node launches must not inherit the socket.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    deinit {
        close()
    }

    /// Registers an instance in the responder's default domain.
    ///
    /// Its SRV record names a host that does not exist. This host's name would link periods and networks to one
    /// machine. The port is that of the discard service for every device, so that it tells nothing; no device reads it.
    static func register(name: String, type: String, text: [UInt8]) throws(ResponderFault) -> ServiceReference {
        let port: UInt16 = 9
        return try ServiceReference("register this device") { library, reference, context in
            library.start_registration(
                &reference, 0, 0, name, type, nil, "\(name).local", port.bigEndian, UInt16(text.count), text,
                registrationCallback, context)
        }
    }

    /// Looks for instances of a type.
    static func browse(type: String) throws(ResponderFault) -> ServiceReference {
        try ServiceReference("look for devices") { library, reference, context in
            library.start_browsing(&reference, 0, 0, type, nil, browseCallback, context)
        }
    }

    /// Watches the TXT record of one instance, on all interfaces.
    ///
    /// - Parameter name: plausible (``InstanceName/isPlausible(_:)``), so that it needs no escaping.
    static func queryText(name: String, type: String) throws(ResponderFault) -> ServiceReference {
        try ServiceReference("read the record of a device") { library, reference, context in
            library.start_query(
                &reference, 0, 0, "\(name).\(type).local.", UInt16(kDNSServiceType_TXT),
                UInt16(kDNSServiceClass_IN), queryCallback, context)
        }
    }

    /// Replaces the TXT record of a registration.
    func update(text: [UInt8]) throws(ResponderFault) {
        guard let reference else { return }
        let code = library.update_record(reference, nil, 0, UInt16(text.count), text, 0)
        guard code == Int32(kDNSServiceErr_NoError) else {
            throw ResponderFault(operation: "update the record of this device", code: code)
        }
    }

    /// Lets the library work, and returns its replies. Call it only when the descriptor is readable: otherwise it waits
    /// without end.
    func process() -> [Reply] {
        guard let reference else { return [] }
        let code = library.process_result(reference)
        var replies = mailbox.replies
        mailbox.replies = []
        if code != Int32(kDNSServiceErr_NoError) {
            replies.append(.failed(ResponderFault(operation: mailbox.operation, code: code)))
        }
        return replies
    }

    /// Ends the reference: the registration is withdrawn, the query stops. Idempotent. Joins the library's thread.
    func close() {
        guard let reference else { return }
        self.reference = nil
        library.end(reference)
    }
}

// MARK: - Callbacks

private func mailbox(_ context: UnsafeMutableRawPointer?) -> ServiceReference.Mailbox? {
    context.map { Unmanaged<ServiceReference.Mailbox>.fromOpaque($0).takeUnretainedValue() }
}

private func text(_ pointer: UnsafePointer<CChar>?) -> String {
    pointer.map { String(cString: $0) } ?? ""
}

private let registrationCallback: DNSServiceRegisterReply = { _, _, code, name, _, _, context in
    guard let mailbox = mailbox(context) else { return }
    guard code == Int32(kDNSServiceErr_NoError) else { return mailbox.fail(code) }
    mailbox.replies.append(.registered(name: text(name)))
}

private let browseCallback: DNSServiceBrowseReply = { _, flags, interface, code, name, _, domain, context in
    guard let mailbox = mailbox(context) else { return }
    guard code == Int32(kDNSServiceErr_NoError) else { return mailbox.fail(code) }
    let isAdded = flags & UInt32(kDNSServiceFlagsAdd) != 0
    mailbox.replies.append(
        .instance(name: text(name), domain: text(domain), interfaceIndex: interface, isAdded: isAdded))
}

private let queryCallback: DNSServiceQueryRecordReply = {
    _, flags, interface, code, _, _, _, length, data, _, context in
    guard let mailbox = mailbox(context) else { return }
    guard code == Int32(kDNSServiceErr_NoError) else { return mailbox.fail(code) }
    let isAdded = flags & UInt32(kDNSServiceFlagsAdd) != 0
    let bytes = [UInt8](UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : Int(length)))
    mailbox.replies.append(.text(bytes, interfaceIndex: interface, isAdded: isAdded))
}

extension ServiceReference.Mailbox {
    fileprivate func fail(_ code: DNSServiceErrorType) {
        replies.append(.failed(ResponderFault(operation: operation, code: code)))
    }
}
