// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonMessages

/// Prints the payload of an activity.
struct PayloadRendering {
    private let payload: WireActivityPayload
    private let activity: ListedActivity

    init(_ payload: WireActivityPayload, device: String, deviceID: String) {
        self.payload = payload
        activity = ListedActivity(payload.summary, device: device, deviceID: deviceID)
    }

    /// For a web page only the URL, so that a script can open it; else a line for each field.
    func lines() throws -> [String] {
        let url = SafeText.escaped(payload.webPageURL)
        if payload.summary.kind == .web, !url.isEmpty { return [url] }
        var lines = ["type       \(SafeText.escaped(activity.type))", "title      \(activity.shownTitle)"]
        if !url.isEmpty { lines.append("web page   \(url)") }
        let userInfo = try userInfo()
        if !userInfo.isEmpty { lines.append("user info  \(userInfo.jsonText)") }
        return lines
    }

    /// The fields of the activity, then its payload.
    func members() throws -> [JSONValue.Member] {
        activity.members + [
            JSONValue.Member("userInfo", try userInfo().json),
            JSONValue.Member("webPageURL", payload.webPageURL.isEmpty ? .null : .string(payload.webPageURL)),
        ]
    }

    private func userInfo() throws -> UserInfo {
        do {
            return try UserInfo(payload.userInfo)
        } catch {
            throw CommandError.failed(
                "the other device sent what this version cannot read: \(SafeText.escaped("\(error)"))")
        }
    }
}
