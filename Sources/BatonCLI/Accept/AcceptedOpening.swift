// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonApplications
import BatonMessages
import FoundationEssentials
import SystemPackage

/// What the desktop opens of an activity that no application here continues.
struct AcceptedOpening {
    let isJSON: Bool

    /// Opens a web page in the browser, and a document where that is wanted. Says what is opened, or why nothing is:
    /// what was accepted is here in any case.
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

    /// In a terminal on another machine `xdg-open` would start a browser for text, in this very terminal.
    private var hasDesktop: Bool {
        let environment = ProcessInfo.processInfo.environment
        return ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    }

    /// - Returns: whether it was opened.
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
