// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonEventLoop
import BatonTLS
import CCURL
import Glibc

/// Requests to one host over HTTPS, one after another, on the calling thread.
///
/// The libcurl handle has every automatism switched off: proxies, credentials, cookies, redirects, other protocols.
final class HTTPSExchange {
    /// How large the headers of an answer may be in all, in bytes.
    static let maximumHeaderBytes = 32 << 10

    /// A status with the body that came with it; a body only with 200.
    struct Answer {
        let status: Int
        let body: [UInt8]
    }

    private let curl: CURLLibrary
    /// A `CURL *`.
    private let handle: UnsafeMutableRawPointer
    private let host: WebHost
    private let configuration: SiteAssociationFetcher.Configuration
    /// On the clock of ``MonotonicClock``.
    private let deadline: UInt64
    private let isCancelled: () -> Bool
    private var route: UnsafeMutablePointer<curl_slist>?

    // Collected by the callbacks.
    private var body: [UInt8] = []
    private var headerBytes = 0
    private var isTooLarge = false
    private var refusedAddress: IPAddress?

    /// Makes a handle for a host. Nothing is sent yet.
    ///
    /// - Parameters:
    ///   - deadline: when everything ends, on the clock of `MonotonicClock`.
    ///   - isCancelled: asked about once a second, and with each piece that arrives.
    /// - Throws: `library`.
    init(
        with host: WebHost, _ configuration: SiteAssociationFetcher.Configuration, deadline: UInt64,
        isCancelled: @escaping () -> Bool
    ) throws(SiteAssociationError) {
        guard let curl = CURLLibrary.shared else {
            throw SiteAssociationError("libcurl is not installed (the package libcurl4)")
        }
        guard let handle = curl.functions.easy_init() else { throw SiteAssociationError("libcurl makes no handle") }
        self.curl = curl
        self.handle = handle
        self.host = host
        self.configuration = configuration
        self.deadline = deadline
        self.isCancelled = isCancelled
        guard setProtocol(), setTrust(), setRoute(), setCallbacks() else {
            throw SiteAssociationError("libcurl lacks something that this needs")
        }
    }

    deinit {
        curl.functions.easy_cleanup(handle)
        curl.functions.slist_free_all(route)
    }

    /// Asks for a path, and waits for the answer.
    func get(_ path: String) throws(SiteAssociationError) -> Answer {
        body = []
        headerBytes = 0
        let now = MonotonicClock.nanoseconds()
        // 0 would be "for ever" to libcurl.
        guard deadline >= now + 1_000_000 else { throw timedOut }
        guard set(CURLOPT_URL, "https://\(host)\(path)"),
            set(CURLOPT_TIMEOUT_MS, Int(min((deadline - now) / 1_000_000, UInt64(Int32.max))))
        else { throw SiteAssociationError("libcurl does not take the address") }
        let code = curl.functions.easy_perform(handle)
        var status = 0
        _ = curl.with { shim_curl_get_long($0, handle, CURLINFO_RESPONSE_CODE, &status) }
        switch code {
        case CURLE_OK, CURLE_HTTP_RETURNED_ERROR:
            // libcurl 7.88 accepts a status of any length from a server that says "HTTP/2" over HTTP/1.1.
            guard (0...999).contains(status) else {
                throw SiteAssociationError("\(host) does not speak HTTPS: its status is no status")
            }
            return Answer(status: status, body: body)
        default: throw failure(code)
        }
    }

    private var timedOut: SiteAssociationError {
        SiteAssociationError("\(host) did not answer in time")
    }

    private func failure(_ code: CURLcode) -> SiteAssociationError {
        if isCancelled() { return SiteAssociationError("nobody waits for it any more") }
        let text = curl.functions.easy_strerror(code).map { String(cString: $0) } ?? "error"
        switch code {
        case CURLE_WRITE_ERROR where isTooLarge:
            return SiteAssociationError("\(host) sends more than \(SiteAssociation.maximumBytes >> 10) KiB")
        case CURLE_OPERATION_TIMEDOUT:
            return timedOut
        case CURLE_PEER_FAILED_VERIFICATION:
            return SiteAssociationError("the certificate of \(host) is not believed (\(text))")
        case CURLE_SSL_CONNECT_ERROR, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE,
            CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
            return SiteAssociationError("\(host) does not speak HTTPS to the end (\(text))")
        case CURLE_COULDNT_CONNECT:
            guard let refusedAddress else { break }
            return SiteAssociationError("\(host) is at \(refusedAddress), which is no address of the internet")
        default:
            break
        }
        return SiteAssociationError("\(host) cannot be reached (\(text))")
    }

    // MARK: - Settings

    /// HTTPS of HTTP/1.1 alone, without anything that comes from the environment or a file of the user.
    private func setProtocol() -> Bool {
        curl.with { shim_curl_set_https_only($0, handle) } == CURLE_OK
            && set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
            // The page that comes with an error is not read.
            && set(CURLOPT_FAILONERROR, 1) && set(CURLOPT_FOLLOWLOCATION, 0)
            // An empty proxy is none, and overrules the environment's (CURLOPT_PROXY(3)).
            && set(CURLOPT_PROXY, "") && set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
            && set(CURLOPT_NOSIGNAL, 1) && set(CURLOPT_USERAGENT, "Baton")
    }

    private func setTrust() -> Bool {
        guard set(CURLOPT_SSL_VERIFYPEER, 1), set(CURLOPT_SSL_VERIFYHOST, 2),
            set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        else { return false }
        switch configuration.anchors {
        case .system:
            return true
        case .certificates(let pem):
            let text = Array(pem.utf8)
            return set(CURLOPT_CAINFO, nil) && set(CURLOPT_CAPATH, nil)
                && curl.with { shim_curl_set_authorities($0, handle, text, text.count) } == CURLE_OK
        }
    }

    /// Where a test has its server. The name in the certificate and in the request stays the host's.
    private func setRoute() -> Bool {
        guard let server = configuration.server else { return true }
        route = curl.functions.slist_append(nil, "::\(server)")
        return route != nil
            && curl.with { shim_curl_set_pointer($0, handle, CURLOPT_CONNECT_TO, route) } == CURLE_OK
    }

    private func set(_ option: CURLoption, _ value: Int) -> Bool {
        curl.with { shim_curl_set_long($0, handle, option, value) } == CURLE_OK
    }

    private func set(_ option: CURLoption, _ text: String?) -> Bool {
        curl.with { shim_curl_set_text($0, handle, option, text) } == CURLE_OK
    }

    // MARK: - Callbacks

    private func setCallbacks() -> Bool {
        // Unretained: the handle, which alone calls back, ends with this object.
        let owner = Unmanaged.passUnretained(self).toOpaque()
        return curl.with { functions in
            let pointers = [CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_XFERINFODATA, CURLOPT_OPENSOCKETDATA]
            guard pointers.allSatisfy({ shim_curl_set_pointer(functions, handle, $0, owner) == CURLE_OK })
            else { return false }
            return shim_curl_set_data_function(
                functions, handle, CURLOPT_WRITEFUNCTION,
                { bytes, size, count, owner in
                    HTTPSExchange.of(owner).takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
                }) == CURLE_OK
                && shim_curl_set_data_function(
                    functions, handle, CURLOPT_HEADERFUNCTION,
                    { _, size, count, owner in HTTPSExchange.of(owner).takeHeader(size * count) }) == CURLE_OK
                && shim_curl_set_progress_function(
                    functions, handle, { owner, _, _, _, _ in HTTPSExchange.of(owner).isCancelled() ? 1 : 0 })
                    == CURLE_OK
                && shim_curl_set_long(functions, handle, CURLOPT_NOPROGRESS, 0) == CURLE_OK
                && shim_curl_set_socket_function(
                    functions, handle,
                    { owner, _, address in
                        guard let address else { return shim_curl_no_socket() }
                        return HTTPSExchange.of(owner).openSocket(to: address)
                    }) == CURLE_OK
        }
    }

    private static func of(_ owner: UnsafeMutableRawPointer?) -> HTTPSExchange {
        guard let owner else { preconditionFailure("libcurl lost what it was given") }
        return Unmanaged<HTTPSExchange>.fromOpaque(owner).takeUnretainedValue()
    }

    /// Another count than that of the bytes ends the transfer (CURLOPT_WRITEFUNCTION(3)).
    private func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard body.count + bytes.count <= SiteAssociation.maximumBytes else {
            isTooLarge = true
            return 0
        }
        body.append(contentsOf: bytes)
        return bytes.count
    }

    private func takeHeader(_ count: Int) -> Int {
        headerBytes += count
        guard headerBytes <= Self.maximumHeaderBytes else {
            isTooLarge = true
            return 0
        }
        return count
    }

    /// Called with each address of the host's name, right before a socket connects to it. The address that is judged
    /// here is the one that is used, even if DNS changes a moment later.
    private func openSocket(to address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
        guard let pointer = shim_curl_address(address), let target = SocketAddress(pointer)?.ipAddress else {
            return shim_curl_no_socket()
        }
        guard AddressPolicy.permits(target, allowingPrivate: configuration.allowsPrivateAddresses) else {
            refusedAddress = target
            return shim_curl_no_socket()
        }
        let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        return socket(address.pointee.family, kind, address.pointee.protocol)
    }
}
