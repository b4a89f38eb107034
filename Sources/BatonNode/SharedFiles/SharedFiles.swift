// SPDX-License-Identifier: Apache-2.0

import BatonDocuments
import BatonEventLoop
import BatonMessages
import Logging
import SystemPackage

/// Translates between files of this device and files of others: the shared folders, and the documents that were
/// fetched.
///
/// A path never crosses. It has a thread of its own, because a shared folder may well be on a network that hangs.
actor SharedFiles {
    /// How long a folder may take for an answer that nothing goes on without. A disk that sleeps is up by then.
    static let deadline = Duration.seconds(15)
    /// The failure of a folder that hangs, for the sentence of ``withDeadline(_:_:device:target:late:file:line:_:)``.
    static let silence = "the shared folders did not answer"
    /// Documents of all applications at most. A further one evicts the oldest, which its application is then refused.
    static let grantBound = 4096

    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let path: FilePath
    let logger: Logger
    private var known = SharedRoots()
    /// What is wrong with the file, for people; `nil` where nothing is.
    private var problem: String?
    /// The documents that were fetched for applications, which may then use them, the latest last. A path is without
    /// links and `..`, and an application is its identifier.
    private var grants: [(path: FilePath, application: String)] = []

    /// - Parameter path: of the file `shared-roots`.
    init(path: FilePath, on executor: BlockingExecutor, logger: Logger) {
        self.path = path
        self.executor = executor
        self.logger = logger
    }

    /// The folders as the file has them now, and none while it is wrong.
    var roots: SharedRoots {
        let (last, lastProblem) = (known, problem)
        do {
            known = try SharedRootsFile.read(path)
            problem = nil
            if known != last, !known.roots.isEmpty {
                logger.notice("shared folders: \(known.roots.map(\.name).joined(separator: ", "))")
            }
        } catch {
            known = SharedRoots()
            problem = "\(path): \(error)"
            if problem != lastProblem {
                logger.warning("shared folders: \(path): \(error); until it is fixed, no folder is shared")
            }
        }
        return known
    }

    /// What is wrong with the file of folders as it is now.
    var currentProblem: String? {
        _ = roots
        return problem
    }

    // MARK: Which files an application may use

    /// A document was fetched for an application, which may use it from now on.
    func grant(_ path: FilePath, to application: String) {
        // A file that has gone meanwhile needs no grant.
        guard let resolved = try? FileLookup.resolved(path) else { return }
        grants.removeAll { $0.application == application && $0.path == resolved }
        if grants.count == Self.grantBound { grants.removeFirst() }
        grants.append((path: resolved, application: application))
    }

    /// Makes sure that an application may use a file: one in a shared folder, or a document that was fetched for it.
    ///
    /// - Parameter application: its identifier; `nil` for whoever has not registered.
    /// - Throws: `accessRefused`.
    func requireAccess(to path: FilePath, by application: String?) throws(HandoffError) {
        let resolved: FilePath
        do {
            resolved = try FileLookup.resolved(path)
        } catch {
            throw HandoffError(.accessRefused, "\(shown(path)) is not there, or cannot be reached (\(error))")
        }
        if roots.place(of: resolved) != nil { return }
        if let application, grants.contains(where: { $0.application == application && $0.path == resolved }) { return }
        throw HandoffError(
            .accessRefused,
            "\(shown(path)) is in no shared folder of this device, and came with no activity of this application: see"
                + " `baton roots --help`")
    }

    private func shown(_ path: FilePath) -> String { NameDisplay.escaped(path.bytes) }
}

extension SharedRoots {
    /// Where a file is for every device that shares the folder: in the innermost one, where they are in each other.
    ///
    /// - Parameter resolved: without links, so that what a link inside a folder leads to outside is outside.
    func place(of resolved: FilePath) -> FileURL.Place? {
        var best: (place: FileURL.Place, depth: Int)?
        for root in roots {
            guard let folder = try? FileLookup.resolved(root.folder), resolved.starts(with: folder) else { continue }
            let depth = folder.components.count
            guard depth > best?.depth ?? -1 else { continue }
            let names = resolved.components.dropFirst(depth).map { name in FilePath(root: nil, [name]).bytes }
            best = (FileURL.Place(root: root.name, components: names), depth)
        }
        return best?.place
    }
}
