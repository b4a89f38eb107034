// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonCore
import BatonMessages
import BatonProtocol
import BatonTransport
import SwiftProtobuf

extension ControlService {
    /// An application runs for as long as its stream is open.
    func register(
        _ request: WireRegisterRequest, from application: Connection, on stream: BatonTransport.Stream
    ) async throws(HandoffError) {
        try applications.register(RunningApplication(request, on: application))
        applicationsChanged()
        do {
            defer {
                applications.unregister(application)
                applicationsChanged()
            }
            // An update that cannot be is told by an abort: see ``serve(_:of:)``.
            try await stream.respond(.register(.init()))
            for try await update in stream.records(of: WireRegisterRequest.self) {
                try applications.update(to: RunningApplication(update, on: application))
                applicationsChanged()
            }
        }
        await stream.finish()
    }

    /// Where Handoff is off for some applications, what is listed depends on which others run.
    private func applicationsChanged() {
        guard !handoffSwitch.current.offApplications.isEmpty else { return }
        directory.changed()
    }

    /// Tells whether Handoff is on, and switches it.
    func handoffSwitch(_ request: WireHandoffSwitchRequest) async throws(HandoffError) -> WireHandoffSwitchResponse {
        let state: HandoffSwitch
        switch request.change {
        case .none, .UNRECOGNIZED:
            state = handoffSwitch.current
        case .on, .off:
            state = try await handoffSwitch.set(request.change == .on, for: request.application)
            offers.decide { $0.setSwitch(state) }
            directory.changed()
        }
        return .with {
            $0.isOn = state.isOn
            $0.offApplications = state.offApplications.sorted()
        }
    }
}

extension WireRequest.OneOf_Kind {
    /// Whether whoever sends the request sends DATA behind it.
    var hasInput: Bool {
        switch self {
        case .continuationStream, .offer, .register, .accept: true
        case .documentRanges(let request): !request.preview
        case .activityList, .payload, .documentManifest, .continued, .release, .accountState, .status,
            .devices, .activities, .withdraw, .handoffSwitch, .documentRead, .access, .adoptState, .transfers,
            .cancelTransfer, .discardPart, .editDevices, .examination, .examine, .willSave, .willContinue,
            .continueActivity,
            .didFail:
            false
        }
    }
}

extension ApplicationChoice.Candidate {
    /// How messages name it.
    var message: WireInstalledApplication {
        .with {
            $0.identifier = identifier
            $0.name = name
        }
    }
}

extension Handoff.Plan {
    /// Whether it goes on when whoever asked for it is gone.
    var outlivesAsker: Bool {
        switch recipient {
        case .asker: destination != nil
        case .application, .applicationOfPage: true
        }
    }
}
