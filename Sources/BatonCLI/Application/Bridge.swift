// SPDX-License-Identifier: Apache-2.0

import Baton
import FoundationEssentials

/// Connects a program in any language to the library, by JSON lines. <doc:ApplicationMessages> is the specification.
///
/// The bounds below limit everything that a program can have at a time. A message that exceeds one is answered by
/// `error`.
actor Bridge {
    /// The longest name that the program gives to an activity or a stream: 64 bytes.
    static let nameBound = 64
    /// Activities at a time, including those that the program continues.
    static let activityBound = 64
    /// Streams at a time. Each has at most 1 MiB on its way.
    static let streamBound = 32
    /// Questions that wait for the program. A further one is not asked: the activity is not saved, or is declined.
    static let questionBound = 64
    /// Files that the program is asking to use.
    static let accessBound = 16
    /// The prefix of names that the bridge gives. The program may not use it.
    static let ownPrefix = "baton-"

    let application: Application
    let printer: BridgePrinter
    var activities: [String: UserActivity] = [:]
    /// The program's name of each activity.
    var names: [ObjectIdentifier: String] = [:]
    var questions: [UInt64: BridgeQuestion] = [:]
    private var streams: [String: StreamPlace] = [:]
    /// The streams that ended last, at most ``streamBound``. A message to one of them crossed its end, and is dropped.
    private var endedStreams: [String] = []
    private var accesses = 0
    private var lastNumber: UInt64 = 0

    /// A stream occupies its name from the moment that the program asks for it.
    private enum StreamPlace {
        case opening
        case open(BridgeStream)
    }

    init(application: Application, printer: BridgePrinter) {
        self.application = application
        self.printer = printer
    }

    /// Prints `ready` before anything else, and registers the application.
    func start() async {
        await printer.print(.ready(application.description))
        application.delegate = self
        application.start()
    }

    /// Prints the state of the node whenever it changes, until the task is cancelled.
    func tellNodeStates() async {
        for await state in application.nodeState where state != .idle { await printer.print(.node(state)) }
    }

    func close() async {
        for activity in activities.values { activity.invalidate() }
        await application.close()
    }

    /// Performs the message of a line, or prints an `error`.
    func handle(_ line: BridgeLines.Line, number: Int) async {
        do throws(BridgeProblem) {
            switch line {
            case .tooLong:
                throw BridgeProblem("the line is longer than \(BridgeLines.bound) bytes")
            case .text(let bytes):
                guard !bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }) else { return }
                try await BridgeRequest(line: bytes).perform(self)
            }
        } catch {
            await printer.print(.error(line: number, error))
        }
    }

    // MARK: Activities

    func becomeCurrent(_ name: String, _ type: String?, _ fields: BridgeFields) throws(BridgeProblem) {
        if let activity = activities[name] {
            guard type == nil || type == activity.activityType else {
                throw BridgeProblem("“\(name)” is of type \(activity.activityType), and keeps it")
            }
            fields.apply(to: activity)
            return activity.becomeCurrent()
        }
        guard let type else { throw BridgeProblem("“\(name)” is a new activity, which needs a “type”") }
        try requireOwn(name)
        try requireRoomForActivity()
        let activity: UserActivity
        do throws(UserActivityError) {
            activity = try UserActivity(activityType: type, application: application)
        } catch {
            throw BridgeProblem(error.message)
        }
        fields.apply(to: activity)
        activity.delegate = self
        keep(activity, as: name)
        activity.becomeCurrent()
    }

    func deleteSaved(_ identifiers: [String]?) {
        if let identifiers {
            application.deleteSavedUserActivities(withPersistentIdentifiers: identifiers)
        } else {
            application.deleteAllSavedUserActivities()
        }
        for activity in activities.values where activity.isInvalidated { forget(activity) }
    }

    func activity(_ name: String) throws(BridgeProblem) -> UserActivity {
        guard let activity = activities[name] else { throw BridgeProblem("there is no activity “\(name)”") }
        return activity
    }

    func requireRoomForActivity() throws(BridgeProblem) {
        guard activities.count < Self.activityBound else {
            throw BridgeProblem("there are \(Self.activityBound) activities: “invalidate” one first")
        }
    }

    func keep(_ activity: UserActivity, as name: String) {
        activities[name] = activity
        names[ObjectIdentifier(activity)] = name
    }

    func forget(_ activity: UserActivity) {
        activity.invalidate()
        if let name = names.removeValue(forKey: ObjectIdentifier(activity)) { activities[name] = nil }
    }

    private func requireOwn(_ name: String) throws(BridgeProblem) {
        guard !name.hasPrefix(Self.ownPrefix) else {
            throw BridgeProblem("names that begin with “\(Self.ownPrefix)” are given by the bridge")
        }
    }

    /// The number for a name of the bridge's own, or for a question.
    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    // MARK: Streams

    func openStream(_ name: String, of activityName: String) throws(BridgeProblem) {
        try requireOwn(name)
        let activity = try activity(activityName)
        guard streams[name] == nil else { throw BridgeProblem("there is a stream “\(name)”") }
        guard streams.count < Self.streamBound else {
            throw BridgeProblem("there are \(Self.streamBound) streams: end one first")
        }
        streams[name] = .opening
        endedStreams.removeAll { $0 == name }
        // Do not wait here: the other device may take long, and other messages go on.
        Task {
            do throws(UserActivityError) {
                let (input, output) = try await activity.continuationStreams()
                await run(BridgeStream(name, input, output, printer: printer), of: activityName, isIncoming: false)
            } catch {
                forget(stream: name)
                await printer.print(.streamFailed(stream: name, error))
            }
        }
    }

    /// Serves a stream that the other device opened, until it has ended.
    func serve(_ activity: UserActivity, _ input: ContinuationInput, _ output: ContinuationOutput) async {
        guard streams.count < Self.streamBound, let activityName = names[ObjectIdentifier(activity)] else {
            return await input.cancel()
        }
        let stream = BridgeStream("\(Self.ownPrefix)\(nextNumber())", input, output, printer: printer)
        await run(stream, of: activityName, isIncoming: true)
    }

    private func run(_ stream: BridgeStream, of activity: String, isIncoming: Bool) async {
        streams[stream.name] = .open(stream)
        await printer.print(.streamOpened(activity: activity, stream: stream.name, isIncoming: isIncoming))
        await stream.run()
        // After a reset another stream may have the name.
        if case .open(let current)? = streams[stream.name], current === stream { forget(stream: stream.name) }
    }

    private func forget(stream name: String) {
        streams[name] = nil
        endedStreams.append(name)
        if endedStreams.count > Self.streamBound { endedStreams.removeFirst() }
    }

    /// - Returns: `nil` for a stream that has just ended.
    func stream(_ name: String) throws(BridgeProblem) -> BridgeStream? {
        switch streams[name] {
        case .open(let stream)?: return stream
        case .opening?: throw BridgeProblem("the stream “\(name)” is not open yet: wait for “streamOpened”")
        case nil:
            guard endedStreams.contains(name) else { throw BridgeProblem("there is no stream “\(name)”") }
            return nil
        }
    }

    func reset(_ name: String, _ status: UInt8?) async throws(BridgeProblem) {
        guard let stream = try stream(name) else { return }
        forget(stream: name)
        await stream.reset(status: status)
    }

    // MARK: Files

    func startAccessing(_ url: URL) throws(BridgeProblem) {
        guard accesses < Self.accessBound else {
            throw BridgeProblem("\(Self.accessBound) files are being asked for: wait for “access”")
        }
        accesses += 1
        Task {
            let refusal: UserActivityError?
            do throws(UserActivityError) {
                _ = try await application.startAccessing(url)
                refusal = nil
            } catch {
                refusal = error
            }
            accesses -= 1
            await printer.print(.access(url, refusal))
        }
    }
}
