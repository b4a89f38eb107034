// SPDX-License-Identifier: Apache-2.0

package import Baton
import Glibc

/// The screen of a program, and the effect of each key.
@MainActor
package protocol TerminalView {
    /// The state of the node, in a few words.
    var node: String { get set }

    /// Performs the action of a key.
    ///
    /// - Returns: whether the program goes on.
    mutating func take(_ key: Key) -> Bool

    mutating func draw(on screen: TerminalScreen)
}

/// A program with an activity on its terminal, from its start to its end.
@MainActor
package enum TerminalProgram {
    private enum Happening {
        case screen(TerminalScreen.Event)
        case node(NodeState)
    }

    /// Runs a program until its user ends it. If it cannot run, prints the reason and ends the process with status 1.
    ///
    /// - Parameter begin: makes the program, which calls the closure when its screen has changed.
    package static func run<View: TerminalView>(
        _ name: String, _ begin: (_ redraw: @escaping () -> Void) throws -> (view: View, application: Application)
    ) async {
        do {
            try await run(begin)
        } catch {
            let line = Array("\(name): \(error)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            exit(1)
        }
    }

    private static func run<View: TerminalView>(
        _ begin: (_ redraw: @escaping () -> Void) throws -> (view: View, application: Application)
    ) async throws {
        let screen = try TerminalScreen()
        defer { screen.close() }
        // Events come from three sources and are handled one after the other.
        let (happenings, happening) = AsyncStream<Happening>.makeStream(bufferingPolicy: .bufferingOldest(4096))
        let (first, application) = try begin { happening.yield(.screen(.redraw)) }
        var view = first
        let keyboard = Task { for await event in screen.events { happening.yield(.screen(event)) } }
        let node = Task { for await state in application.nodeState { happening.yield(.node(state)) } }
        defer {
            keyboard.cancel()
            node.cancel()
        }
        events: for await event in happenings {
            switch event {
            case .screen(.key(let key)):
                guard view.take(key) else { break events }
            case .screen(.redraw): break
            case .screen(.quit): break events
            case .node(let state): view.node = describe(state)
            }
            view.draw(on: screen)
        }
        screen.close()
        // The other devices see the activity go.
        await application.close()
    }

    private static func describe(_ state: NodeState) -> String {
        switch state {
        case .idle: ""
        case .missing: "no node: stays on this device"
        case .connected: "connected to the node"
        }
    }
}
