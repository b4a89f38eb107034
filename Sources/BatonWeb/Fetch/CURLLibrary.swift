// SPDX-License-Identifier: Apache-2.0

import CCURL

/// libcurl, loaded when the first file is fetched; see CCURL for why it is not linked.
struct CURLLibrary: @unchecked Sendable {  // reason: functions, never changed after they were loaded
    private let functions: shim_curl

    /// The library of this process; nil if libcurl is not installed.
    static let shared: CURLLibrary? = {
        var functions = shim_curl()
        return shim_curl_load(&functions) != 0 ? CURLLibrary(functions: functions) : nil
    }()

    /// Calls `body` with the functions, as the shims take them.
    func with<Result>(_ body: (UnsafePointer<shim_curl>) -> Result) -> Result {
        withUnsafePointer(to: functions, body)
    }

    /// A new handle: one at a time may use it, from any thread. Nil when memory is short.
    func makeHandle() -> OpaqueHandle? { functions.easy_init().map { OpaqueHandle(pointer: $0) } }

    /// Ends a handle and its connections.
    func end(_ handle: OpaqueHandle) { functions.easy_cleanup(handle.pointer) }

    /// Runs the transfer of a handle, and blocks meanwhile.
    func perform(_ handle: OpaqueHandle) -> CURLcode { functions.easy_perform(handle.pointer) }

    /// libcurl's text for a failure.
    func text(of code: CURLcode) -> String { functions.easy_strerror(code).map { String(cString: $0) } ?? "error" }

    /// A list of one line, which the caller frees.
    func makeList(_ line: String) -> UnsafeMutablePointer<curl_slist>? { functions.slist_append(nil, line) }

    /// Frees a list.
    func free(_ list: UnsafeMutablePointer<curl_slist>?) { functions.slist_free_all(list) }

    /// A `CURL *`.
    struct OpaqueHandle {
        let pointer: UnsafeMutableRawPointer
    }
}
