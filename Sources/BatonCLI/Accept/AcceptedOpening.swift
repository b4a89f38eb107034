// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import BatonDocuments
import BatonMessages
import FoundationEssentials
import Glibc
import SystemPackage

/// Opens an accepted activity on the desktop, if no application here continues it.
struct AcceptedOpening {
    let isJSON: Bool

    /// Opens a web page in the browser, and a document if the user wants that. It tells the user what was opened, or
    /// why nothing was. A failure changes nothing about the accept.
    func open(_ outcome: AcceptRun.Outcome, documents: Bool) async {
        guard !outcome.continued.hasApplication else { return }
        let launcher = ApplicationLauncher(environment: ProcessInfo.processInfo.environment)
        let payload = outcome.payload
        switch payload.summary.kind {
        case .document:
            guard documents else { return }
            guard let path = String(validating: outcome.continued.path, as: UTF8.self) else {
                return say("the document cannot be opened: its name is not UTF-8, and the desktop takes no other")
            }
            _ = await opening("the document") { () throws(LaunchError) in
                try await launcher.open(file: FilePath(path))
            }
        case .web, .application, .UNRECOGNIZED:
            guard !payload.webPageURL.isEmpty else {
                say("no application here continues \(SafeText.escaped(payload.summary.type)): see `baton applications`")
                return
            }
            guard hasDesktop else {
                return say("there is no desktop here to open it with a browser")
            }
            let browser = await launcher.defaultBrowserName()
            let isOpen = await opening("the page") { () throws(LaunchError) in
                try await launcher.open(url: payload.webPageURL)
            }
            if isOpen { say("opened in \(browser.map { SafeText.escaped($0) } ?? "the browser")") }
        }
    }

    /// Whether there is a graphical desktop. Without one `xdg-open` would start a text browser in this terminal.
    private var hasDesktop: Bool {
        let environment = ProcessInfo.processInfo.environment
        return ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    }

    private func opening(_ what: String, _ open: () async throws(LaunchError) -> Void) async -> Bool {
        do throws(LaunchError) {
            try await open()
            return true
        } catch {
            say("\(what) cannot be opened: \(SafeText.escaped("\(error)"))")
            return false
        }
    }

    private func say(_ text: String) {
        guard !isJSON else { return }
        Output.say(text)
    }
}

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

    func members() throws -> [JSONMember] {
        activity.members + [
            .init("userInfo", .dictionary(try userInfo().entries)),
            .text("webPageURL", payload.webPageURL.isEmpty ? nil : payload.webPageURL),
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
