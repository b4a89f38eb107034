// SPDX-License-Identifier: Apache-2.0

import CCURL

/// libcurl, loaded when the first file is fetched; see CCURL for why it is not linked.
struct CURLLibrary: @unchecked Sendable {  // reason: functions, never changed after they were loaded
    let functions: shim_curl

    /// The library of this process; nil if libcurl is not installed.
    static let shared: CURLLibrary? = {
        var functions = shim_curl()
        return shim_curl_load(&functions) != 0 ? CURLLibrary(functions: functions) : nil
    }()

    /// Calls `body` with the functions, as the shims take them.
    func with<Result>(_ body: (UnsafePointer<shim_curl>) -> Result) -> Result {
        withUnsafePointer(to: functions, body)
    }
}
