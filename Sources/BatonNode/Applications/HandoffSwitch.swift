import BatonEventLoop
import BatonMessages
import FoundationEssentials

/// Whether the user wants Handoff at all, and for which applications not.
///
/// What is off is neither announced nor listed nor handed over, in both directions.
struct HandoffSwitch: Sendable, Hashable {
    /// Applications that may be switched off; one more is refused.
    static let bound = 256

    /// Of the device as a whole.
    var isOn = true
    /// The identifiers of applications for which it is off.
    var offApplications: Set<String> = []

    /// Whether an application's activities are handed over.
    ///
    /// - Parameter application: its identifier; empty for what a command offers or accepts.
    func isOn(for application: String) -> Bool {
        isOn && !offApplications.contains(application)
    }

    /// What a user is told who accepts while it is off.
    func requireOn(for application: String = "") throws(HandoffError) {
        guard isOn else { throw HandoffError(.handoffOff, "Handoff is switched off on this device") }
        guard isOn(for: application) else {
            throw HandoffError(.handoffOff, "Handoff is switched off for \(application)")
        }
    }
}

/// Keeps the switch in a file of the configuration folder: a line `off`, and a line `off IDENTIFIER` for each
/// application. No file means on. It lives on the node's storage thread.
actor HandoffSwitchKeeper {
    private nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let path: String
    private var state: HandoffSwitch?

    init(path: String, on executor: BlockingExecutor) {
        self.path = path
        self.executor = executor
    }

    /// The switch as the user left it.
    var current: HandoffSwitch {
        if let state { return state }
        let state = load()
        self.state = state
        return state
    }

    /// Switches, for the device or for one application, and writes it down.
    func set(_ isOn: Bool, for application: String) throws(HandoffError) -> HandoffSwitch {
        var changed = current
        if application.isEmpty {
            changed.isOn = isOn
        } else if isOn {
            changed.offApplications.remove(application)
        } else {
            guard changed.offApplications.count < HandoffSwitch.bound else {
                throw HandoffError(.limitExceeded, "\(HandoffSwitch.bound) applications are switched off already")
            }
            guard application.utf8.count <= 255, application.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw HandoffError(
                    .invalidRequest, "an application's identifier has no spaces, as in org.example.editor")
            }
            changed.offApplications.insert(application)
        }
        do {
            try write(changed)
        } catch {
            throw HandoffError(.internal, "the choice cannot be kept: \(path) cannot be written (\(error))")
        }
        state = changed
        return changed
    }

    private func write(_ state: HandoffSwitch) throws {
        guard state != HandoffSwitch() else {
            guard FileManager.default.fileExists(atPath: path) else { return }
            return try FileManager.default.removeItem(atPath: path)
        }
        let lines = (state.isOn ? [] : ["off"]) + state.offApplications.sorted().map { "off \($0)" }
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: URL(filePath: path), options: .atomic)
    }

    /// What is no line of ours is passed over.
    private func load() -> HandoffSwitch {
        var state = HandoffSwitch()
        guard let content = FileManager.default.contents(atPath: path), content.count <= 1 << 17 else { return state }
        for line in String(decoding: content, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.first == "off" else { continue }
            switch words.count {
            case 1: state.isOn = false
            case 2 where state.offApplications.count < HandoffSwitch.bound:
                state.offApplications.insert(String(words[1]))
            default: continue
            }
        }
        return state
    }
}
