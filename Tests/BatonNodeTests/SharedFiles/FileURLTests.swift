// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

@testable import BatonNode

@Suite("URLs of files, here and between nodes")
struct FileURLTests {
    @Test("A file URL is a path of this device in whatever bytes, and what follows is kept")
    func fileURL() {
        #expect(FileURL("file:///a/b%20c/%FF%2f") == .path(Array("/a/b c/".utf8) + [0xFF, 0x2F]))
        #expect(FileURL("FILE://LOCALHOST/a?x=%00#y") == .path(Array("/a".utf8), suffix: "?x=%00#y"))
        #expect(FileURL("file:/a") == .path(Array("/a".utf8)))
        #expect(FileURL("file:///a;b=1#c?d") == .path(Array("/a;b=1".utf8), suffix: "#c?d"))
        for none in [
            "file://host/a", "file:a", "file:", "file://", "file:///a%00b", "file:///a%2", "file:///a%zz", "files:///a",
            "http:///a", "/a", "file:///a%", "", "file:?/a", "\rile:///a",
        ] {
            #expect(FileURL(none) == nil, "\(none)")
        }
    }

    @Test("Every name there can be comes back, and Foundation reads it the same way")
    func roundTrips() throws {
        let seed: UInt64 = 61
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<1000 {
            let name = generator.bytes(Int.random(in: 1...40, using: &generator)).filter { $0 != 0 }
            let url = FileURL.path([UInt8(ascii: "/")] + name, suffix: "#1")
            #expect(FileURL(url.text) == url, "seed \(seed)")
            let component = name.filter { $0 != UInt8(ascii: "/") }
            guard !component.isEmpty, component != [0x2E], component != [0x2E, 0x2E] else { continue }
            let place = FileURL.Place(root: "Documents", components: [component, component])
            for carried in [FileURL.root(place, suffix: "?q"), .document(place, suffix: "")] {
                #expect(FileURL(carried.text) == carried, "seed \(seed)")
            }
        }
        let path = "/tmp/a b/ö;c=%2F#?"
        #expect(URL(string: FileURL.path(Array(path.utf8)).text)?.path == path)
        #expect(FileURL(URL(fileURLWithPath: path).absoluteString) == .path(Array(path.utf8)))
    }

    @Test("Between nodes: the root and names beneath it, and nothing that could lead elsewhere")
    func carried() {
        let place = FileURL.Place(root: "Documents", components: [Array("a b".utf8), Array("c".utf8)])
        #expect(FileURL("baton-root:///Documents/a%20b/c") == .root(place, suffix: ""))
        #expect(FileURL("BATON-ROOT:///Documents/a%20b/c#3") == .root(place, suffix: "#3"))
        #expect(FileURL("baton-document:") == .document(nil, suffix: ""))
        #expect(FileURL("baton-document:#page=2") == .document(nil, suffix: "#page=2"))
        #expect(FileURL("baton-document:///Documents/a%20b/c") == .document(place, suffix: ""))
        #expect(FileURL("baton-root:///Documents") == .root(.init(root: "Documents", components: []), suffix: ""))
        let folder = FileURL.root(.init(root: "D", components: [[0x61]], isFolder: true), suffix: "")
        #expect(FileURL("baton-root:///D/a/") == folder && folder.text == "baton-root:///D/a/")
        // A combining mark behind a separator makes one character of both; bytes are what counts.
        let marked = FileURL.root(.init(root: "D", components: [[0x61]]), suffix: "?\u{301}")
        #expect(FileURL("baton-root:///D/a?\u{301}") == marked && marked.text == "baton-root:///D/a?\u{301}")
        for none in [
            "baton-root:", "baton-root:///", "baton-root:////a", "baton-root:/Documents/a", "baton-root://Documents/a",
            "baton-root:///../a", "baton-root:///Documents/../a", "baton-root:///Documents/%2E%2E/a",
            "baton-root:///Documents/./a", "baton-root:///Documents//a", "baton-root:///Documents/a%2F..%2Fb",
            "baton-root:///Documents/a%00", "baton-root:///%2Fetc/a", "baton-root:///.ssh/a", "baton-root:///a%20b/c",
            "baton-document:x", "baton-document:///", "baton-document:///Documents/..",
            "baton-roots:///a/b", "baton-document:\u{301}",
        ] {
            #expect(FileURL(none) == nil, "\(none)")
        }
        #expect(FileURL.Scheme(of: "Baton-Root:nonsense") == .root && FileURL.Scheme(of: "baton-roots:///a") == nil)
    }
}
