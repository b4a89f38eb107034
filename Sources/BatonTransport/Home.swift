// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where a node and its applications meet, and where the node keeps what it knows.
///
/// `BATON_HOME=DIR` moves everything beneath `DIR`, so that two nodes run on one machine. Otherwise the folders of the
/// XDG Base Directory Specification hold: `$XDG_CONFIG_HOME/baton`, `$XDG_STATE_HOME/baton` and
/// `$XDG_RUNTIME_DIR/baton`. Where that variable is missing, as under cron, su and sudo, `/run/user/UID` is taken,
/// which is what it says in a session; where that is missing as well, the socket is in the state folder.
package struct Home: Sendable, Hashable {
    /// What the user sets: 0700.
    package let configurationFolder: String
    /// What the node keeps, secrets among it: 0700.
    package let stateFolder: String
    /// Where the local socket is: 0700, and gone after a restart of the machine.
    package let runtimeFolder: String

    /// The Unix-domain socket of the node: 0600.
    package var socketPath: String { runtimeFolder + "/node.socket" }

    /// - Parameter environment: the process's environment.
    /// - Throws: ``HomeError`` where it names no home at all or a relative one.
    package init(environment: [String: String]) throws(HomeError) {
        try self.init(environment: environment, runtimeFolders: "/run/user")
    }

    /// - Parameter runtimeFolders: where each user who is logged in has a folder, named by the user's number.
    init(environment: [String: String], runtimeFolders: String) throws(HomeError) {
        func folder(_ name: String) throws(HomeError) -> String? {
            guard let value = environment[name], !value.isEmpty else { return nil }
            guard value.hasPrefix("/") else { throw HomeError(variable: name, isRelative: true) }
            return value.count > 1 && value.hasSuffix("/") ? String(value.dropLast()) : value
        }
        if let home = try folder("BATON_HOME") {
            configurationFolder = home + "/config"
            stateFolder = home + "/state"
            runtimeFolder = home + "/run"
            return
        }
        func standard(_ name: String, beneathHome path: String) throws(HomeError) -> String {
            if let set = try folder(name) { return set + "/baton" }
            guard let home = try folder("HOME") else { throw HomeError(variable: "HOME", isRelative: false) }
            return home + path + "/baton"
        }
        configurationFolder = try standard("XDG_CONFIG_HOME", beneathHome: "/.config")
        stateFolder = try standard("XDG_STATE_HOME", beneathHome: "/.local/state")
        if let runtime = try folder("XDG_RUNTIME_DIR") {
            runtimeFolder = runtime + "/baton"
        } else {
            let own = "\(runtimeFolders)/\(geteuid())"
            runtimeFolder = Self.isPrivate(own) ? own + "/baton" : stateFolder + "/run"
        }
    }

    /// Whether it is a folder of this user that nobody else may enter.
    private static func isPrivate(_ path: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else { return false }
        return status.st_mode & ~mode_t(0o7000) == S_IFDIR | 0o700 && status.st_uid == geteuid()
    }
}

/// An environment that names no usable home.
package struct HomeError: Error, Sendable, CustomStringConvertible {
    let variable: String
    let isRelative: Bool

    package var description: String {
        isRelative
            ? "\(variable) has to be an absolute path: set it to one that begins with /"
            : "\(variable) is not set: set it, or set BATON_HOME to a folder for Baton"
    }
}
