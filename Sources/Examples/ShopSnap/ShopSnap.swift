import Baton
import FoundationEssentials
import Glibc
import TerminalScreen

/// A shopping list in the terminal that continues on the user's other devices.
@main
@MainActor
struct ShopSnap {
    static func main() async {
        do {
            try await run()
        } catch {
            let line = Array("shopsnap: \(error)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            exit(1)
        }
    }

    private static func run() async throws {
        let screen = try TerminalScreen()
        defer { screen.close() }
        let shop = try Shop(environment: ProcessInfo.processInfo.environment)
        // What happens comes from three sides, and is shown one after the other.
        let (happenings, happening) = AsyncStream<Happening>.makeStream(bufferingPolicy: .bufferingOldest(4096))
        shop.onChange = { happening.yield(.screen(.redraw)) }
        let keyboard = Task { for await event in screen.events { happening.yield(.screen(event)) } }
        let node = Task { for await state in shop.application.nodeState { happening.yield(.node(state)) } }
        defer {
            keyboard.cancel()
            node.cancel()
        }

        var view = ShopScreen(shop)
        events: for await event in happenings {
            switch event {
            case .screen(.key(let key)):
                guard view.take(key, suspend: screen.suspend) else { break events }
            case .screen(.redraw): break
            case .screen(.quit): break events
            case .node(let state): view.node = describe(state)
            }
            view.draw(on: screen)
        }
        screen.close()
        // The other devices see it go.
        await shop.application.close()
    }

    private enum Happening {
        case screen(TerminalScreen.Event)
        case node(NodeState)
    }

    private static func describe(_ state: NodeState) -> String {
        switch state {
        case .idle: ""
        case .missing: "no node: stays on this device"
        case .connected: "on all your devices"
        }
    }
}
