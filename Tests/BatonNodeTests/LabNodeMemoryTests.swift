// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Documents leave little in the memory of the nodes.
@Suite(.serialized, .lab, .timeLimit(.minutes(5)))
struct LabNodeMemoryTests {
    /// Bytes of a node's memory that no file is behind.
    private func memory(_ node: HostCommand) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(node.program.processIdentifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
        return (Int(try #require(line.split(separator: " ").dropLast().last)) ?? 0) << 10
    }

    @Test("Folders of many files, one after the other, leave the memory of both nodes as the first did")
    func folders() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let nodes = try await lab.startNodes()
        let album = lab.folder.appendingPathComponent("album")
        for folder in 0..<50 {
            let place = album.appendingPathComponent("\(folder)")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for file in 0..<200 {
                let name = place.appendingPathComponent("picture \(file).txt").path
                #expect(FileManager.default.createFile(atPath: name, contents: Data("\(folder) \(file)".utf8)))
            }
        }
        let offer = try await lab.offer(1, album.path)
        try await lab.watch(2).listed("album")
        var memories: [[Int]] = []
        for round in 1...5 {
            let accept = try lab.start(2, "accept", offer.id, "--to", try lab.destination("inbox \(round)").path)
            let ended = try await accept.end(within: .seconds(60))
            #expect(ended.status == 0, "\(ended.errors)")
            memories.append(try nodes.map(memory))
        }
        print("memory of both nodes after each of five folders: \(memories)")
        for (first, last) in zip(memories[0], memories[4]) { #expect(last < first + 6 << 20) }
    }
}
