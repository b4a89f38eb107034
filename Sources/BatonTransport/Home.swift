// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import Glibc

/// The folders of a node and its applications: settings, state, and the local socket.
///
/// `BATON_HOME=DIR` moves everything beneath `DIR`, so that two nodes can run on one machine. Otherwise the XDG Base
/// Directory Specification applies: `$XDG_CONFIG_HOME/baton`, `$XDG_STATE_HOME/baton` and `$XDG_RUNTIME_DIR/baton`.
/// Under cron, su and sudo the last variable is missing. Then `/run/user/UID` is used, which is its value in a session,
/// and if that is missing too, the socket is in the state folder.
package struct Home: Sendable, Hashable {
    /// The user's settings: 0700.
    package let configurationFolder: String
    /// The node's state, with secrets: 0700.
    package let stateFolder: String
    /// The folder of the local socket: 0700, and gone after a restart of the machine.
    package let runtimeFolder: String

    /// The Unix-domain socket of the node: 0600. At most 107 bytes (unix(7)), so that a `BATON_HOME` has at most 91.
    package var socketPath: String { runtimeFolder + "/node.socket" }

    /// Reads the folders from the environment.
    ///
    /// - Parameter environment: the process's environment.
    /// - Throws: ``HomeError`` if it names no home, a relative one, or one whose path is too long for a socket.
    package init(environment: [String: String]) throws(HomeError) {
        try self.init(environment: environment, runtimeFolders: "/run/user")
        guard socketPath.utf8.count <= SocketAddress.longestUnixPath else {
            let bound = SocketAddress.longestUnixPath
            throw HomeError(
                "the path \(socketPath) is longer than \(bound) bytes: set BATON_HOME or XDG_RUNTIME_DIR to a shorter"
                    + " folder")
        }
    }

    /// Does the same with another parent of the users' runtime folders, each named by the user's number.
    init(environment: [String: String], runtimeFolders: String) throws(HomeError) {
        func folder(_ name: String) throws(HomeError) -> String? {
            guard let value = environment[name], !value.isEmpty else { return nil }
            guard value.hasPrefix("/") else {
                throw HomeError("\(name) has to be an absolute path: set it to one that begins with /")
            }
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
            guard let home = try folder("HOME") else {
                throw HomeError("HOME is not set: set it, or set BATON_HOME to a folder for Baton")
            }
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
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
