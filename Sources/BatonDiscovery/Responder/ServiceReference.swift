// SPDX-License-Identifier: Apache-2.0

import CDNSSD
import Glibc

/// One `DNSServiceRef`: a registration, a browse or a query. Owns it and ends it exactly once.
///
/// Every method may block on D-Bus, for as long as 25 s when the daemon hangs, and none may run beside another one of
/// the same reference: all of them belong on one ``BlockingExecutor``. The library's callbacks run inside
/// ``process()``; they only write down what they were told, because ending a reference inside its own callback frees
/// what the library is about to use.
final class ServiceReference {
    /// What the library told.
    enum Reply {
        /// A registration is complete, under this name.
        case registered(name: String)
        /// An instance appeared or disappeared on an interface, in one address family.
        case instance(name: String, domain: String, isAdded: Bool)
        /// A TXT record appeared or disappeared on an interface, in one address family.
        case text([UInt8], interfaceIndex: UInt32, isAdded: Bool)
        /// The reference is dead, and nothing will come of it any more.
        case failed(ResponderFault)
    }

    /// Where callbacks put replies. A class, because the library keeps its address.
    fileprivate final class Mailbox {
        var replies: [Reply] = []
        let operation: String
        init(operation: String) { self.operation = operation }
    }

    /// Zeroing allocator and environment, before the first call of the process.
    private static let prepared: Void = cdnssd_prepare()

    private let mailbox: Mailbox
    private var reference: DNSServiceRef?

    /// What to watch for readability before ``process()``; the reference owns it.
    let descriptor: Int32

    private init(
        _ operation: String, _ call: (inout DNSServiceRef?, UnsafeMutableRawPointer) -> DNSServiceErrorType
    ) throws(ResponderFault) {
        _ = Self.prepared
        mailbox = Mailbox(operation: operation)
        var reference: DNSServiceRef?
        let code = call(&reference, Unmanaged.passUnretained(mailbox).toOpaque())
        guard code == Int32(kDNSServiceErr_NoError), let reference else {
            throw ResponderFault(operation: operation, code: code)
        }
        self.reference = reference
        descriptor = DNSServiceRefSockFD(reference)
        // The library forgets it: a program that the node launches must not inherit the socket.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    deinit {
        close()
    }

    /// Registers an instance in the responder's default domain.
    ///
    /// Its SRV record names a host that nobody can look up, and not this one: the host's name would tell two periods,
    /// and two networks, that they are of the same machine.
    static func register(
        name: String, type: String, port: UInt16, text: [UInt8]
    ) throws(ResponderFault) -> ServiceReference {
        try ServiceReference("register this device") { reference, context in
            DNSServiceRegister(
                &reference, 0, 0, name, type, nil, "\(name).local", port.bigEndian, UInt16(text.count), text,
                registrationCallback, context)
        }
    }

    /// Looks for instances of a type.
    static func browse(type: String) throws(ResponderFault) -> ServiceReference {
        try ServiceReference("look for devices") { reference, context in
            DNSServiceBrowse(&reference, 0, 0, type, nil, browseCallback, context)
        }
    }

    /// Watches the TXT record of one instance, on all interfaces.
    ///
    /// - Parameter name: plausible (``InstanceName/isPlausible(_:)``), so that it needs no escaping.
    static func queryText(name: String, type: String) throws(ResponderFault) -> ServiceReference {
        try ServiceReference("read the record of a device") { reference, context in
            DNSServiceQueryRecord(
                &reference, 0, 0, "\(name).\(type).local.", UInt16(kDNSServiceType_TXT),
                UInt16(kDNSServiceClass_IN), queryCallback, context)
        }
    }

    /// Replaces the TXT record of a registration.
    func update(text: [UInt8]) throws(ResponderFault) {
        guard let reference else { return }
        let code = DNSServiceUpdateRecord(reference, nil, 0, UInt16(text.count), text, 0)
        guard code == Int32(kDNSServiceErr_NoError) else {
            throw ResponderFault(operation: "update the record of this device", code: code)
        }
    }

    /// Lets the library work, and returns what it told. Only to be called when the descriptor is readable: it waits
    /// otherwise, without end.
    func process() -> [Reply] {
        guard let reference else { return [] }
        let code = DNSServiceProcessResult(reference)
        var replies = mailbox.replies
        mailbox.replies = []
        if code != Int32(kDNSServiceErr_NoError) {
            replies.append(.failed(ResponderFault(operation: mailbox.operation, code: code)))
        }
        return replies
    }

    /// Ends the reference: the registration says goodbye, the query stops. Idempotent. Joins the library's thread.
    func close() {
        guard let reference else { return }
        self.reference = nil
        DNSServiceRefDeallocate(reference)
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

private let browseCallback: DNSServiceBrowseReply = { _, flags, _, code, name, _, domain, context in
    guard let mailbox = mailbox(context) else { return }
    guard code == Int32(kDNSServiceErr_NoError) else { return mailbox.fail(code) }
    let isAdded = flags & UInt32(kDNSServiceFlagsAdd) != 0
    mailbox.replies.append(.instance(name: text(name), domain: text(domain), isAdded: isAdded))
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
