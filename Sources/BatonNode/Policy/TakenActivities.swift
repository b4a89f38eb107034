// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonEventLoop
import FoundationEssentials

import struct SystemPackage.FilePath

/// Which activities were taken over by a rule: each once, also when the node is started again.
///
/// One line each, device and activity, in a file of the state folder. It lives on the node's storage thread.
@StorageThread
final class TakenActivities {
    /// The most that are remembered; the oldest are forgotten. A line has at most 66 bytes.
    nonisolated static let bound = 512
    /// The most of one device, so that none makes the others' forgotten.
    nonisolated static let boundPerDevice = 64

    private let path: String
    private var entries: [String]?

    nonisolated init(path: String) {
        self.path = path
    }

    /// Notes an activity, before it is taken.
    ///
    /// - Returns: whether it is new.
    /// - Throws: what the system says when it cannot be written down: then it must not be taken.
    func insert(_ activity: ActivityID, of device: String) throws -> Bool {
        var known = entries ?? load()
        let entry = "\(device) \(activity)"
        guard !known.contains(entry) else { return false }
        known.append(entry)
        let own = known.indices.filter { known[$0].hasPrefix(device + " ") }
        if own.count > Self.boundPerDevice { known.remove(at: own[0]) }
        known.removeFirst(max(0, known.count - Self.bound))
        try write(known)
        return true
    }

    /// Takes the note of an activity back with which nothing was begun.
    ///
    /// - Throws: what the system says when that cannot be written down.
    func remove(_ activity: ActivityID, of device: String) throws {
        let entry = "\(device) \(activity)"
        try write((entries ?? load()).filter { $0 != entry })
    }

    private func write(_ known: [String]) throws {
        try SmallFile.replace(FilePath(path), with: Array(known.map { $0 + "\n" }.joined().utf8))
        entries = known
    }

    /// What is there from earlier; what is no line of ours is passed over.
    private func load() -> [String] {
        guard let content = FileManager.default.contents(atPath: path), content.count <= 128 * Self.bound else {
            return []
        }
        return String(decoding: content, as: UTF8.self).split(separator: "\n").map(String.init).suffix(Self.bound)
    }
}
