// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Glibc
import TerminalScreen
import Testing

@testable import Baton
@testable import ShopSnap

/// ShopSnap with states that it cannot take.
///
/// The tests run one after the other, since they share the main actor and a delegate has 5 s.
@Suite("ShopSnap and what it cannot take", .serialized) @MainActor struct ShopTests {
    private func inHome(_ body: (String) async throws -> Void) async throws {
        let home = try ScratchFolder("shop")
        defer { home.remove() }
        try await body(home.path)
    }

    @Test("A list of version 9 is not handled, is told by its version, and takes nothing of what is here")
    func versionNine() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            shop.set("Milk", to: .wanted)
            shop.draft.field = TextField("half ty")
            let activity = try UserActivity(activityType: Shop.viewingType, application: shop.application)
            activity.version = 9
            activity.userInfo = ["items": ["Bread"]]
            let isHandled = await shop.application(
                shop.application, continue: activity, restorationHandler: RestorationHandler(activity))
            #expect(!isHandled)
            #expect(shop.notice.contains("version 9"), "\(shop.notice)")
            #expect(shop.list.shown.map(\.name) == ["Milk"])
            #expect(shop.draft.field.text == "half ty")
            // The library's own report does not replace the sentence.
            let told = shop.notice
            await shop.application(
                shop.application, didFailToContinueUserActivityWithType: Shop.viewingType,
                error: UserActivityError(.notHandled, "ShopSnap did not handle it"))
            #expect(shop.notice == told)
            await shop.application.close()
        }
    }

    @Test("What the other device's user cancelled is no notice; any other failure is one")
    func cancelled() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            let activity = try UserActivity(activityType: Shop.viewingType, application: shop.application)
            await shop.userActivity(activity, didFail: UserActivityError(.remoteApplicationTimedOut, "it was late"))
            #expect(shop.notice.contains("it was late"))
            await shop.userActivity(activity, didFail: UserActivityError(.userCancelled, "it was let go"))
            #expect(shop.notice.isEmpty)
            await shop.application.close()
        }
    }

    /// The state that a device gets if it takes the half-typed item over now.
    private func give(_ shop: Shop, to name: String) async -> ContinuingDevice {
        await shop.userActivityWillSave(shop.editing)
        return ContinuingDevice(name: name, identifier: name, userInfo: shop.editing.userInfo)
    }

    @Test("A half-typed item leaves when a device goes on with it as it is now, and stays where it was typed on")
    func handedOver() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            shop.draft.field = TextField("oat m")
            let desktop = await give(shop, to: "desktop")
            shop.draft.field = TextField("oat milk")
            let tablet = await give(shop, to: "tablet")
            await shop.userActivityWasContinued(shop.editing, by: desktop)
            #expect(shop.draft.field.text == "oat milk" && shop.notice == "Continued on desktop.")
            // Continuing the list does not take the item, and neither does a failure.
            await shop.userActivityWasContinued(
                shop.viewing, by: ContinuingDevice(name: "phone", identifier: "phone", userInfo: shop.list.userInfo))
            await shop.userActivity(
                shop.editing, didFail: UserActivityError(.userCancelled, "it was let go", device: "phone"))
            #expect(shop.draft.field.text == "oat milk" && shop.notice.isEmpty)
            // Moving the cursor is not typing.
            shop.draft.field = TextField("oat milk", cursor: 3)
            await shop.userActivityWasContinued(shop.editing, by: tablet)
            #expect(shop.draft.field.isEmpty)

            // The replaced item is part of the state.
            shop.draft = Shop.Draft(field: TextField("bread"), replaces: "Toast")
            let replacing = await give(shop, to: "desktop")
            shop.draft.replaces = nil
            await shop.userActivityWasContinued(shop.editing, by: replacing)
            #expect(shop.draft.field.text == "bread")
            shop.draft.replaces = "Toast"
            await shop.userActivityWasContinued(shop.editing, by: replacing)
            #expect(shop.draft.field.isEmpty && shop.draft.replaces == nil)
            await shop.application.close()
        }
    }

    @Test("An item that two devices were given leaves with the first, and takes nothing that was typed since with it")
    func twoDevices() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            shop.draft.field = TextField("eggs")
            let (desktop, tablet) = (await give(shop, to: "desktop"), await give(shop, to: "tablet"))
            await shop.userActivityWasContinued(shop.editing, by: desktop)
            #expect(shop.draft.field.isEmpty)
            shop.draft.field = TextField("salt")
            await shop.userActivityWasContinued(shop.editing, by: tablet)
            #expect(shop.draft.field.text == "salt")
            await shop.application.close()
        }
    }

    @Test("Two devices that take the same item from each other at the same moment do not both let go of it")
    func swapped() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            shop.draft.field = TextField("eggs")
            let desktop = await give(shop, to: "desktop")
            // The desktop's state, before it says that it continues.
            let activity = try UserActivity(activityType: Shop.editingType, application: shop.application)
            activity.version = ShoppingList.version
            activity.userInfo = desktop.userInfo
            await shop.restoreUserActivityState(activity)
            await shop.userActivityWasContinued(shop.editing, by: desktop)
            #expect(shop.draft.field.text == "eggs" && shop.waiting.isEmpty)
            await shop.application.close()
        }
    }

    @Test("Half-typed items that had to make room come back one after the other; one too many is not taken")
    func waiting() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            @MainActor func come(_ text: String) async throws -> Bool {
                let activity = try UserActivity(activityType: Shop.editingType, application: shop.application)
                activity.version = ShoppingList.version
                activity.userInfo = ["items": [], "draft": .string(text), "cursor": 1]
                let handler = RestorationHandler(activity)
                return await shop.application(shop.application, continue: activity, restorationHandler: handler)
            }
            shop.draft.field = TextField("butter")
            // An item that comes again with more text stays one item.
            for text in ["oat m", "bread", "oat m"] { #expect(try await come(text)) }
            #expect(shop.draft.field.text == "oat m" && shop.draft.field.cursor == 1)
            var finished: [String] = []
            while !shop.draft.field.isEmpty {
                finished.append(shop.draft.field.text)
                shop.finishDraft()
            }
            #expect(finished == ["oat m", "bread", "butter"])

            // A waiting item leaves as well when a device continues it.
            shop.draft.field = TextField("salt")
            let tablet = await give(shop, to: "tablet")
            #expect(try await come("pepper"))
            await shop.userActivityWasContinued(shop.editing, by: tablet)
            shop.finishDraft()
            #expect(shop.draft.field.isEmpty)

            shop.draft.field = TextField("first")
            for number in 1...Shop.waitingBound { #expect(try await come("item \(number)")) }
            #expect(try await !come("one more"))
            #expect(shop.notice.hasPrefix("Finish one"), "\(shop.notice)")
            #expect(shop.draft.field.text == "item \(Shop.waitingBound)")
            shop.finishDraft()
            #expect(try await come("one more"))
            await shop.application.close()
        }
    }

    @Test("Blanks are no item; what finds no room stays half-typed, and what came without is counted")
    func full() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            @MainActor func type(_ text: String, replacing name: String? = nil) {
                shop.draft = Shop.Draft(field: TextField(text), replaces: name)
                shop.finishDraft()
            }
            type(" ")
            #expect(shop.list.items.isEmpty && shop.notice.isEmpty && shop.draft.field.isEmpty, "\(shop.notice)")
            type("Milk")
            type("  ", replacing: "Milk")
            #expect(shop.list.shown.map(\.name) == ["Milk"] && shop.notice.isEmpty && shop.draft.field.isEmpty)
            type("Oat milk", replacing: "Milk")
            #expect(shop.list.shown.map(\.name) == ["Oat milk"] && shop.notice.isEmpty)

            for number in 1..<ShoppingList.bound { type("Item \(number)") }
            #expect(shop.list.shown.count == ShoppingList.bound && shop.notice.isEmpty)
            type("One more")
            #expect(shop.notice.hasPrefix("The list is full") && shop.draft.field.text == "One more")
            #expect(shop.list.shown.count == ShoppingList.bound)
            // An item of another name needs room.
            type("Item one", replacing: "Item 1")
            #expect(shop.notice.isEmpty && shop.draft.field.isEmpty)
            #expect(shop.list.shown.count == ShoppingList.bound && shop.list.shown.last?.name == "Item one")

            var other = ShoppingList()
            for name in ["Item 2", "Bread", "Butter"] { other.set(name, to: .wanted) }
            other.set("Salt", to: .removed)
            let activity = try UserActivity(activityType: Shop.viewingType, application: shop.application)
            activity.version = ShoppingList.version
            activity.userInfo = other.userInfo
            await shop.restoreUserActivityState(activity)
            #expect(shop.notice.contains("2 of its items"), "\(shop.notice)")
            #expect(shop.list.shown.count == ShoppingList.bound)
            await shop.application.close()
        }
    }

    @Test("An item that is changed stays bought, or becomes the one that it means; one that was not is no newer word")
    func changed() async throws {
        try await inHome { home in
            let shop = try Shop(environment: ["BATON_HOME": home])
            @MainActor func change(_ name: String, to text: String) {
                shop.draft = Shop.Draft(field: TextField(text), replaces: name)
                shop.finishDraft()
            }
            var shown: [String] { shop.list.shown.map { "\($0.name) \($0.state)" } }
            shop.set("Rice", to: .bought)
            shop.set("Tea", to: .wanted)
            let before = shop.list
            change("Rice", to: "Rice")
            #expect(shop.list == before && shop.draft.field.isEmpty)
            change("Rice", to: "Brown rice")
            #expect(shown == ["Tea wanted", "Brown rice bought"])
            change("Brown rice", to: "tea")
            #expect(shown == ["tea wanted"])
            shop.set("Rice", to: .wanted)
            shop.set("tea", to: .bought)
            change("Rice", to: "tea")
            #expect(shown == ["tea wanted"])
            // The list has come meanwhile, with another spelling, or without it.
            shop.set("TEA", to: .bought)
            change("tea", to: "Green tea")
            #expect(shown == ["Green tea bought"])
            shop.set("Green tea", to: .removed)
            change("Green tea", to: "Black tea")
            #expect(shown == ["Black tea wanted"])
            // Typed anew it is wanted again.
            shop.set("Black tea", to: .bought)
            shop.draft = Shop.Draft(field: TextField("black tea"))
            shop.finishDraft()
            #expect(shown == ["black tea wanted"])
            await shop.application.close()
        }
    }

    @Test("On a full disk it is said that the list is not kept; the one that is kept stays, and later all is kept")
    func fullDisk() async throws {
        try await inHome { home in
            let outcome = try await FullDisk.run(at: home, bytes: 64 << 10) { filler in
                let file = ListFile(environment: ["BATON_HOME": home])
                var list = ShoppingList()
                _ = list.set("Milk", to: .wanted)
                try file.keep(&list)
                let kept = try? Data(contentsOf: URL(filePath: file.path))
                filler.fill()
                for number in 0..<150 { _ = list.set("Item number \(number)", to: .wanted) }
                var problem = ""
                do throws(ListFile.Failure) {
                    try file.keep(&list)
                } catch {
                    problem = error.description
                }
                let isWhole = kept != nil && (try? Data(contentsOf: URL(filePath: file.path))) == kept
                filler.remove()
                try file.keep(&list)
                var next = ShoppingList()
                try file.keep(&next)
                return (problem, isWhole, next.shown.count)
            }
            #expect(outcome.0.hasSuffix("list.json.new cannot be written (No space left on device)"), "\(outcome.0)")
            #expect(outcome.1, "the old one is whole")
            #expect(outcome.2 == 151)
        }
    }
}

/// A small file system that only this test sees. It goes with the thread that made it.
private enum FullDisk {
    /// Fills the file system.
    struct Filler {
        let path: String

        func fill() {
            let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            let block = [UInt8](repeating: 0, count: 4096)
            while write(file, block, block.count) > 0 {}
            close(file)
        }

        func remove() { unlink(path) }
    }

    struct Unavailable: Error {}

    static func run<Result: Sendable>(
        at folder: String, bytes: Int, _ body: @escaping @Sendable (Filler) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            // Namespaces belong to a thread, so this thread is used for nothing else.
            let thread = Thread {
                guard mountPrivately(at: folder, bytes: bytes) else {
                    return continuation.resume(throwing: Unavailable())
                }
                continuation.resume(with: Swift.Result { try body(Filler(path: folder + "/filler")) })
            }
            thread.start()
        }
    }

    /// `unshare` and `mount` are GNU extensions, which Swift's Glibc module does not show.
    private static func mountPrivately(at folder: String, bytes: Int) -> Bool {
        typealias Unshare = @convention(c) (Int32) -> Int32
        typealias Mount =
            @convention(c) (
                UnsafePointer<CChar>?, UnsafePointer<CChar>, UnsafePointer<CChar>?, UInt, UnsafeRawPointer?
            ) -> Int32
        guard let unshareSymbol = dlsym(nil, "unshare"), let mountSymbol = dlsym(nil, "mount") else { return false }
        let unshare = unsafeBitCast(unshareSymbol, to: Unshare.self)
        let mount = unsafeBitCast(mountSymbol, to: Mount.self)
        let (newNamespace, files, recursive, isPrivate) = (Int32(0x20000), Int32(0x200), UInt(0x4000), UInt(1 << 18))
        guard unshare(newNamespace | files) == 0, mount(nil, "/", nil, recursive | isPrivate, nil) == 0 else {
            return false
        }
        return mount("tmpfs", folder, "tmpfs", 0, "size=\(bytes)") == 0
    }
}
