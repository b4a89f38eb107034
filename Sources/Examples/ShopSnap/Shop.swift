// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials
import Logging
import TerminalScreen

/// The shopping list, the item that the user is typing, and the activities that hand them over.
@MainActor
final class Shop {
    nonisolated static let viewingType = "org.baton.shopsnap.viewing"
    nonisolated static let editingType = "org.baton.shopsnap.editing"

    /// An item that the user is typing.
    struct Draft: Equatable {
        /// Tells it from another draft with the same text, such as one that has come.
        var id = UUID()
        var field = TextField()
        /// The name of the item that it replaces; `nil` for a new item.
        var replaces: String?

        /// Whether the text is the same, wherever the cursor is.
        func saysTheSame(as other: Draft) -> Bool {
            field.text == other.field.text && replaces == other.replaces
        }
    }

    private(set) var list = ShoppingList() { didSet { onChange() } }
    /// Changing it changes the offer: the list, or the list with the half-typed item.
    var draft = Draft() { didSet { draftChanged(from: oldValue) } }
    /// A message for the user, such as the device that continues.
    var notice = "" { didSet { onChange() } }
    /// Called after every visible change.
    var onChange: () -> Void = {}

    let application: Application
    let viewing: UserActivity
    let editing: UserActivity
    private let file: ListFile
    /// Half-typed items that made room for one that came, the newest last. Each comes back when that one is done.
    private(set) var waiting: [Draft] = []
    /// The most waiting items.
    static let waitingBound = 16

    init(environment: [String: String]) throws {
        application = try Application(
            Application.Description(
                identifier: "org.baton.shopsnap", name: "ShopSnap", team: "BATONSAMPLES",
                continues: [
                    ContinuedActivityType(Self.viewingType, versions: ShoppingList.readableVersions),
                    ContinuedActivityType(Self.editingType, versions: ShoppingList.readableVersions),
                ]),
            // Standard output is the screen.
            logger: Logger(label: "shopsnap") { _ in SwiftLogNoOpLogHandler() })
        viewing = try UserActivity(activityType: Self.viewingType, application: application)
        editing = try UserActivity(activityType: Self.editingType, application: application)
        viewing.title = "Shopping list"
        editing.title = "Shopping list: an item"
        viewing.requiredUserInfoKeys = ["items"]
        editing.requiredUserInfoKeys = ["items", "draft", "cursor"]
        file = ListFile(environment: environment)
        for activity in [viewing, editing] {
            activity.version = ShoppingList.version
            activity.delegate = self
        }
        application.delegate = self
        application.isInFront = true
        keep()
        offer()
    }

    // MARK: What the user does

    func set(_ name: String, to state: ShoppingList.Item.State) {
        take { $0.set(name, to: state) }
    }

    /// The draft becomes an item. A blank or unchanged draft is dropped, and a draft without room in the list stays.
    func finishDraft() {
        let finished = draft
        let text = finished.field.text
        guard text != finished.replaces, !text.allSatisfy(\.isWhitespace) else { return dropDraft() }
        let isTaken = take { list in
            guard let replaced = finished.replaces else { return list.set(text, to: .wanted) }
            let old = list.item(replaced)
            // If it becomes another item of the list, both have to be bought already.
            let isBought = old?.state == .bought && (list.item(text) ?? old)?.state == .bought
            if let old { list.set(old.name, to: .removed) }
            return list.set(text, to: isBought ? .bought : .wanted)
        }
        if isTaken { dropDraft() }
    }

    /// Changes the list, unless it is full.
    @discardableResult
    private func take(_ change: (inout ShoppingList) -> Bool) -> Bool {
        var changed = list
        guard change(&changed) else {
            notice = "The list is full: take something off it."
            return false
        }
        list = changed
        notice = ""
        keep()
        for activity in [viewing, editing] { activity.needsSave = true }
        return true
    }

    func dropDraft() {
        draft = waiting.popLast() ?? Draft()
    }

    /// The user has come to this terminal, or has left it.
    func isInFront(_ isInFront: Bool) {
        application.isInFront = isInFront
        // The newest activity of a device is the one that other devices see first.
        if isInFront { current.becomeCurrent() }
    }

    // MARK: What other devices see

    private var current: UserActivity { draft.field.isEmpty ? viewing : editing }

    private func offer() {
        if !current.isCurrent { current.becomeCurrent() }
    }

    private func draftChanged(from old: Draft) {
        guard draft != old else { return }
        editing.needsSave = true
        offer()
        onChange()
    }

    private func keep() {
        do throws(ListFile.Failure) {
            try file.keep(&list)
        } catch {
            notice = "The list is not kept: \(error)."
        }
    }
}

extension Shop: UserActivityDelegate {
    /// A device takes the list over now, and gets this state.
    func userActivityWillSave(_ activity: UserActivity) async {
        activity.userInfo = list.userInfo
        if activity === editing { activity.addUserInfoEntries(from: draft.userInfo) }
    }

    /// The half-typed item is on that device now. Text that was typed here since stays.
    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        notice = "Continued on \(device.name)."
        guard activity === editing, let given = Draft(device.userInfo) else { return }
        waiting.removeAll { $0.id == given.id && $0.saysTheSame(as: given) }
        if draft.id == given.id, draft.saysTheSame(as: given) { dropDraft() }
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        notice = error.code == .userCancelled ? "" : "Not handed over: \(error)."
    }
}

extension Shop: ApplicationDelegate {
    func application(
        _ application: Application, willContinueUserActivityWithType type: String
    ) async -> WillContinue {
        notice = "A list is on its way…"
        return .applicationShowsProgress
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        // An unreadable list was not handled, so the other device keeps its draft.
        do throws(ShoppingList.Unreadable) {
            _ = try ShoppingList(activity.userInfo, version: activity.version)
        } catch {
            notice = "The list that came: \(error)."
            return false
        }
        let hasRoom = draft.field.isEmpty || waiting.count < Self.waitingBound
        guard activity.activityType == Self.viewingType || hasRoom else {
            notice = "Finish one of your half-typed items first: \(Self.waitingBound) wait already."
            return false
        }
        await restorationHandler([self])
        return true
    }

    func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
    ) async {
        switch error.code {
        case .userCancelled: notice = ""
        // The notice says already why.
        case .notHandled: break
        case _: notice = "Nothing came: \(error)."
        }
    }
}

extension Shop: UserActivityRestoring {
    func restoreUserActivityState(_ activity: UserActivity) async {
        do throws(ShoppingList.Unreadable) {
            let left = list.merge(try ShoppingList(activity.userInfo, version: activity.version))
            notice = left == 0 ? "The list has come." : "The list has come; \(left) of its items found no room here."
        } catch {
            notice = "The list that came: \(error)."
            return
        }
        keep()
        guard var come = Draft(activity.userInfo) else { return }
        // If both devices continue each other at the same moment, each drops the draft that it gave, and not the one
        // that has come.
        come.id = UUID()
        waiting.removeAll { $0.saysTheSame(as: come) }
        if !draft.field.isEmpty, !draft.saysTheSame(as: come) { waiting.append(draft) }
        draft = come
    }
}
