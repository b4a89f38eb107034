// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import BatonProtocol

/// The activity that the user means, as far as the command line says.
struct ActivityChoice: Sendable {
    var name: ActivityName?
    var isLatest = false
    /// A device's name, or the beginning of its id.
    var device: String?

    /// The activities that may be meant; one if the command line says which.
    func pick(from activities: [ListedActivity]) -> [ListedActivity] {
        let matching = matches(in: activities)
        guard isLatest, let newest = matching.max(by: { $0.since < $1.since }) else { return matching }
        return [newest]
    }

    func matches(in activities: [ListedActivity]) -> [ListedActivity] {
        let fromDevice = activities.filter(isFromDevice)
        return name?.matches(in: fromDevice) ?? fromDevice
    }

    private func isFromDevice(_ activity: ListedActivity) -> Bool {
        guard let device = device?.lowercased() else { return true }
        // An id is never a name: a device cannot take another's place by that.
        let isCalledSo = activity.device.lowercased() == device && DeviceID(device) == nil
        return isCalledSo || activity.deviceID.lowercased().hasPrefix(device)
    }

    /// The error if nothing was found.
    ///
    /// - Parameter gone: activities that were listed before.
    func nothingFound(
        among activities: [ListedActivity], gone: [ListedActivity] = [], waited: Duration?
    ) -> CommandError {
        let sentence: String
        if name != nil, let before = matches(in: gone).last {
            let current = activities.first { $0.deviceID == before.deviceID }
            let replacement = current.map { "; it offers \($0.shownTitle) now, \($0.shortID)" } ?? ""
            sentence =
                "\(SafeText.escaped(before.device)) no longer offers \(before.shownTitle)\(replacement):"
                + " see what there is with `baton activities`"
        } else if activities.isEmpty {
            sentence =
                "no other device offers anything now: run `baton offer` there, or wait with --wait SECONDS; if"
                + " `baton devices` does not show that device, find the cause with `baton doctor`"
        } else {
            var conditions: [String] = []
            if let device { conditions.append("from \(SafeText.escaped(device))") }
            if let name { conditions.append("with an id or a title that begins with \(name.shown)") }
            sentence =
                "no activity \(conditions.joined(separator: " ")) is offered; `baton activities` lists the"
                + " \(activities.count) that \(activities.count == 1 ? "is" : "are")"
        }
        let waiting = waited.map { "waited \($0.components.seconds) s: " } ?? ""
        return CommandError(.noSuchActivity, waiting + sentence)
    }

    /// The error if several match and the command cannot ask.
    static func ambiguous(_ activities: [ListedActivity]) -> CommandError {
        let names = DeviceNames(activities.map { ($0.device, $0.deviceID) })
        let list = activities.map {
            "  \($0.shortID)  \($0.shownTitle), from \(names.shown($0.device, $0.deviceID))"
        }
        return CommandError(
            .usage, code: "ambiguousActivity",
            "\(activities.count) activities match: give an id, --from DEVICE or --latest\n"
                + list.joined(separator: "\n"))
    }
}

/// The name of an activity on the command line: the beginning of its id or of its title.
struct ActivityName: Sendable, Equatable {
    let text: String

    /// The activities that have the name.
    ///
    /// An id counts before a title, so that no device can hide another one's activity behind a title. A whole title
    /// counts before the beginning of a longer one.
    func matches(in activities: [ListedActivity]) -> [ListedActivity] {
        let name = text.lowercased()
        let tests: [(ListedActivity) -> Bool] = [
            { $0.idText.hasPrefix(name) }, { $0.title.lowercased() == name }, { $0.title.lowercased().hasPrefix(name) },
        ]
        for test in tests {
            let matching = activities.filter(test)
            if !matching.isEmpty { return matching }
        }
        return []
    }

    /// The name in a sentence, safe to show.
    var shown: String { "“\(SafeText.escaped(text))”" }
}
