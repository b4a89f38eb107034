// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

/// Finds programs as `execvp(3)` does, but before anything is started, so that errors can be told apart.
struct ExecutableSearch: Sendable, Hashable {
    private let folders: [FilePath]

    /// - Parameter environment: `PATH` counts, without its relative folders, since the working folder here means
    ///   nothing.
    init(environment: [String: String]) {
        folders = (environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
            .filter { $0.hasPrefix("/") }.map { FilePath(String($0)) }
    }

    /// The file of a program.
    ///
    /// - Parameter program: a name, which is looked for on `PATH`, or an absolute path.
    func find(_ program: String) throws(LaunchError) -> FilePath {
        if program.hasPrefix("/") {
            let path = FilePath(program)
            switch Self.check(path) {
            case .executable: return path
            case .notExecutable:
                throw LaunchError(.notExecutable, "\(program) cannot be run: it is no program, or not for this user")
            case .missing: throw LaunchError(.commandNotFound, "there is no \(program)")
            }
        }
        guard !program.contains("/") else {
            throw LaunchError(.commandNotFound, "\(program) is no absolute path: register it with one")
        }
        var unusable: FilePath?
        for folder in folders {
            let path = folder.appending(program)
            switch Self.check(path) {
            case .executable: return path
            case .notExecutable: unusable = unusable ?? path
            case .missing: continue
            }
        }
        if let unusable {
            throw LaunchError(.notExecutable, "\(unusable) cannot be run: it is no program, or not for this user")
        }
        throw LaunchError(.commandNotFound, "there is no program \(program) in PATH")
    }

    private enum Finding {
        case executable
        case notExecutable
        case missing
    }

    private static func check(_ path: FilePath) -> Finding {
        guard let status = try? path.stat() else { return .missing }
        guard status.type == .regular, access(path.string, X_OK) == 0 else { return .notExecutable }
        return .executable
    }
}
