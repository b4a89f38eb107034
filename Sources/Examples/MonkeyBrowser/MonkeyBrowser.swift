// SPDX-License-Identifier: Apache-2.0

import TerminalScreen

/// A browser of four tabs in the terminal, each of which continues on the user's other devices.
@main
@MainActor
struct MonkeyBrowser {
    static func main() async {
        await TerminalProgram.run("monkeybrowser") { redraw in
            let browser = try Browser()
            browser.onChange = redraw
            return (BrowserScreen(browser), browser.application)
        }
    }
}
