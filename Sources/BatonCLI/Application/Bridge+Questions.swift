// SPDX-License-Identifier: Apache-2.0

import Baton
import BatonEventLoop

struct BridgeQuestion: Sendable {
    /// The message that answers it.
    let message: String
    /// The activity that is saved.
    let activity: UserActivity?
    let answer: FirstResult<BridgeAnswer?>
}

enum BridgeAnswer: Sendable {
    case saved
    case willContinue(WillContinue)
    case continued(Bool)
}

/// The library's questions, which the program answers.
///
/// The library cancels the task of a question that takes too long. The bridge then forgets the question's number, and
/// answers a late answer with `error`.
extension Bridge: ApplicationDelegate, UserActivityDelegate {
    func userActivityWillSave(_ activity: UserActivity) async {
        guard let name = names[ObjectIdentifier(activity)] else { return }
        _ = await ask("saved", activity) { .willSave(request: $0, activity: name) }
    }

    func userActivityWasContinued(_ activity: UserActivity, by device: ContinuingDevice) async {
        guard let name = names[ObjectIdentifier(activity)] else { return }
        await printer.print(.wasContinued(activity: name, device))
    }

    func userActivity(
        _ activity: UserActivity, didReceive inputStream: ContinuationInput, outputStream: ContinuationOutput
    ) async {
        await serve(activity, inputStream, outputStream)
    }

    func userActivity(_ activity: UserActivity, didFail error: UserActivityError) async {
        guard let name = names[ObjectIdentifier(activity)] else { return }
        await printer.print(.failed(activity: name, error))
    }

    func application(
        _ application: Application, willContinueUserActivityWithType type: String
    ) async -> WillContinue {
        let answer = await ask("willContinue") { .willContinue(request: $0, type: type) }
        guard case .willContinue(let willContinue) = answer else { return .refused("it did not answer") }
        return willContinue
    }

    func application(
        _ application: Application, continue activity: UserActivity, restorationHandler: RestorationHandler
    ) async -> Bool {
        do {
            try requireRoomForActivity()
        } catch {
            return false
        }
        let name = "\(Self.ownPrefix)\(nextNumber())"
        activity.delegate = self
        keep(activity, as: name)
        let answer = await ask("continued") { .continue(request: $0, activity: name, activity) }
        guard case .continued(true) = answer else {
            forget(activity)
            return false
        }
        return true
    }

    func application(
        _ application: Application, didFailToContinueUserActivityWithType type: String, error: UserActivityError
    ) async {
        await printer.print(.didFailToContinue(type: type, error))
    }

    /// - Returns: `nil` if there is no answer in time, or too many questions wait.
    private func ask(
        _ message: String, _ activity: UserActivity? = nil, _ event: @Sendable (UInt64) -> BridgeEvent
    ) async -> BridgeAnswer? {
        guard questions.count < Self.questionBound else { return nil }
        let number = nextNumber()
        let answer = FirstResult<BridgeAnswer?>()
        questions[number] = BridgeQuestion(message: message, activity: activity, answer: answer)
        defer { questions[number] = nil }
        await printer.print(event(number))
        return await answer.value(ifCancelled: .some(nil))
    }

    func saved(_ request: UInt64, _ fields: BridgeFields) throws(BridgeProblem) {
        if let activity = questions[request]?.activity { fields.apply(to: activity) }
        try answer(request, "saved", .saved)
    }

    func answer(_ request: UInt64, _ message: String, _ answer: BridgeAnswer) throws(BridgeProblem) {
        guard let question = questions[request] else {
            throw BridgeProblem("no question \(request) waits: it was answered, or it was waited for long enough")
        }
        guard question.message == message else { throw BridgeProblem("this is no answer to question \(request)") }
        questions[request] = nil
        question.answer.decide(answer)
    }
}
