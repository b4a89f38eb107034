// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TerminalScreen

/// A shopping list in the terminal that continues on the user's other devices.
@main
@MainActor
struct ShopSnap {
    static func main() async {
        await TerminalProgram.run("shopsnap") { redraw in
            let shop = try Shop(environment: ProcessInfo.processInfo.environment)
            shop.onChange = redraw
            return (ShopScreen(shop), shop.application)
        }
    }
}
