// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonTestSupport
import Foundation
import Testing

@testable import ShopSnap

@Suite("Shopping list")
struct ShoppingListTests {
    private static let monday = Date(timeIntervalSince1970: 1_763_683_200)

    /// A list as a user makes it, of few names, so that two of them have much in common.
    private func list(_ generator: inout SeededGenerator) -> ShoppingList {
        var list = ShoppingList()
        for _ in 0..<Int.random(in: 0...30, using: &generator) {
            let names = ["Milk", "milk ", "BREAD", "bread", "Oat  milk", "Käse", "Eggs", "tea"]
            let name = names.randomElement(using: &generator)
            let state = ShoppingList.Item.State.allCases.randomElement(using: &generator)
            list.set(
                name ?? "", to: state ?? .wanted,
                now: Self.monday + Double(Int.random(in: 0...4, using: &generator)))
        }
        return list
    }

    /// The part that both sides agree on: each device has its own order.
    private func words(_ list: ShoppingList) -> Set<ShoppingList.Item> { Set(list.items) }

    @Test("Whoever merges with whom, in whatever order and however often, ends with the same list, each item once")
    func merging() {
        let seed = SeededGenerator.chosenSeed
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let (a, b, c) = (list(&generator), list(&generator), list(&generator))
            var (ab, ba) = (a, b)
            ab.merge(b)
            ba.merge(a)
            #expect(words(ab) == words(ba), "seed \(seed)")
            var again = ab
            again.merge(b)
            again.merge(a)
            #expect(again == ab, "seed \(seed)")
            var (left, right) = (ab, b)
            left.merge(c)
            right.merge(c)
            var other = a
            other.merge(right)
            #expect(words(left) == words(other), "seed \(seed)")
            #expect(Set(left.items.map(\.identity)).count == left.items.count, "seed \(seed)")
        }
    }

    @Test("An item that was taken off one device's list does not come back from another's")
    func removal() {
        var laptop = ShoppingList()
        laptop.set("Milk", to: .wanted, now: Self.monday)
        var desktop = laptop
        laptop.set("milk", to: .removed, now: Self.monday)
        desktop.merge(laptop)
        laptop.merge(desktop)
        #expect(laptop.shown.isEmpty)
        #expect(desktop.shown.isEmpty)
        // Wanted again, even after the clock was set back.
        desktop.set("Milk", to: .wanted, now: Self.monday - 3600)
        laptop.merge(desktop)
        #expect(laptop.shown.map(\.name) == ["Milk"])
    }

    @Test("A full list forgets what was taken off longest ago, refuses one more, and fits into an activity")
    func bound() throws {
        var list = ShoppingList()
        let name = String(repeating: "ß", count: ShoppingList.nameBound / 2 - 2)
        /// Whether there was room.
        func set(_ name: String, _ state: ShoppingList.Item.State = .wanted) -> Bool { list.set(name, to: state) }
        for number in 100..<100 + ShoppingList.bound { #expect(set("\(name)\(number)")) }
        #expect(!set("one more"))
        try list.userInfo.validate()
        #expect(set("\(name)150", .removed))
        #expect(set("one more"))
        #expect(list.items.count == ShoppingList.bound)
        #expect(!set(String(repeating: "x", count: ShoppingList.nameBound + 1), .removed))
    }

    @Test("Version 2 comes back as it went, and version 1 is read: any other word stands against it")
    func versions() throws {
        var generator = SeededGenerator(seed: 7)
        let list = list(&generator)
        #expect(try ShoppingList(list.userInfo, version: 2) == list)
        #expect(try ShoppingList(UserInfo(json: list.userInfo.jsonText.utf8), version: 2) == list)

        let old = try ShoppingList(["items": ["Milk", "Bread", "MILK"]], version: 1)
        #expect(old.shown.map(\.name) == ["Milk", "Bread"])
        var new = ShoppingList()
        new.set("milk", to: .bought, now: Self.monday)
        new.merge(old)
        #expect(new.shown.map(\.name) == ["milk", "Bread"])
        #expect(new.shown.map(\.state) == [.bought, .wanted])
    }

    @Test(
        "What is no list is refused",
        arguments: [
            (["items": ["Milk"]], 2), (["items": ["Milk"]], 3), (["items": ["Milk"]], 0), (["items": [1]], 1),
            (["items": "Milk"], 1), ([:], 2), (["items": [["name": "Milk", "state": "eaten"]]], 2),
            (["items": [" "]], 1), (["items": [.string(String(repeating: "x", count: 101))]], 1),
        ] as [(UserInfo, UInt32)])
    func refused(_ userInfo: UserInfo, _ version: UInt32) {
        #expect(throws: ShoppingList.Unreadable.self) { try ShoppingList(userInfo, version: version) }
    }
}

@Suite("The file of the shopping list")
struct ListFileTests {
    /// A file in a folder of its own.
    private func withFile(_ body: (ListFile) throws -> Void) throws {
        let folder = try ScratchFolder("list")
        defer { folder.remove() }
        try body(ListFile(environment: ["BATON_HOME": folder.path]))
    }

    private func contents(_ file: ListFile) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: file.folder).sorted()
    }

    @Test("What was kept is there for the next one, and what two keep is merged")
    func keeping() throws {
        try withFile { file in
            var first = ShoppingList()
            first.set("Milk", to: .wanted)
            try file.keep(&first)
            var second = ShoppingList()
            second.set("Bread", to: .wanted)
            try file.keep(&second)
            #expect(second.shown.map(\.name).sorted() == ["Bread", "Milk"])
            var third = ShoppingList()
            try file.keep(&third)
            #expect(Set(third.items) == Set(second.items))
            #expect(try contents(file) == ["list.json"])
        }
    }

    @Test("A file that ShopSnap 1 wrote is read, and written in version 2")
    func versionOne() throws {
        try withFile { file in
            try FileManager.default.createDirectory(atPath: file.folder, withIntermediateDirectories: true)
            try #"{"version": 1, "items": ["Milk"]}"#.write(toFile: file.path, atomically: true, encoding: .utf8)
            var list = ShoppingList()
            list.set("Bread", to: .wanted)
            try file.keep(&list)
            let text = try String(contentsOfFile: file.path, encoding: .utf8)
            #expect(text.contains(#""version":2"#) && text.contains("Milk") && text.contains("Bread"))
        }
    }

    @Test("A file that is damaged is set aside, and one that a crash left half written is not looked at")
    func damaged() throws {
        try withFile { file in
            try FileManager.default.createDirectory(atPath: file.folder, withIntermediateDirectories: true)
            try #"{"version": 2, "items": [{"na"#.write(toFile: file.path, atomically: true, encoding: .utf8)
            var list = ShoppingList()
            list.set("Milk", to: .wanted)
            try file.keep(&list)
            #expect(try contents(file) == ["list.json", "list.json.unreadable"])
            try #"{"ver"#.write(toFile: file.path + ".new", atomically: true, encoding: .utf8)
            var next = ShoppingList()
            try file.keep(&next)
            #expect(next.shown.map(\.name) == ["Milk"])
        }
    }

    @Test("Where nothing can be kept, that is said")
    func unwritable() throws {
        let file = ListFile(environment: ["BATON_HOME": "/proc/none"])
        var list = ShoppingList()
        #expect(throws: ListFile.Failure.self) { try file.keep(&list) }
    }

    @Test("The file is where the environment says")
    func places() {
        func path(_ environment: [String: String]) -> String { ListFile(environment: environment).path }
        #expect(path(["BATON_HOME": "/b", "XDG_STATE_HOME": "/s"]) == "/b/state/shopsnap/list.json")
        #expect(path(["XDG_STATE_HOME": "/s", "HOME": "/home"]) == "/s/shopsnap/list.json")
        #expect(path(["HOME": "/home"]) == "/home/.local/state/shopsnap/list.json")
    }
}
