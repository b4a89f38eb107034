// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
import BatonMessages

/// How many continuation streams of this user's applications are open to other devices, so that none of them takes all
/// the places of a connection that others use as well.
///
/// A stream keeps its place until the other device counts it no longer: an application that aborts streams faster than
/// their RESETs may leave (``BatonProtocol/Limits/sentResets``) finds no place for new ones, and slows nobody but
/// itself.
@ControlLoop
final class ContinuationPlaces {
    /// Of one application, over its connection to this node: as many as an activity serves
    /// (``Baton/UserActivity/continuationStreams()``).
    nonisolated static let boundOfApplication = 32
    /// To one device, of all applications together: of the 128 streams that it allows, a quarter is left to what the
    /// nodes have to say to each other.
    nonisolated static let boundToDevice = 96

    private var byApplication: [ObjectIdentifier: Int] = [:]
    private var toDevice: [String: Int] = [:]

    nonisolated init() {}

    /// Takes a place, to be given back by ``giveBack(application:device:)`` unless this throws.
    ///
    /// - Parameters:
    ///   - application: the application's connection, which whoever took a place keeps.
    ///   - device: the verified identifier.
    /// - Throws: ``HandoffError`` `limitExceeded`.
    func take(application: ObjectIdentifier, device: String) throws(HandoffError) {
        guard byApplication[application, default: 0] < Self.boundOfApplication else {
            throw Self.tooMany("\(Self.boundOfApplication) continuation streams of this application")
        }
        guard toDevice[device, default: 0] < Self.boundToDevice else {
            throw Self.tooMany("\(Self.boundToDevice) continuation streams to that device")
        }
        byApplication[application, default: 0] += 1
        toDevice[device, default: 0] += 1
    }

    private static func tooMany(_ what: String) -> HandoffError {
        HandoffError(.limitExceeded, "\(what) are open, or not wholly closed yet: try again in a moment")
    }

    /// The stream has left its connection.
    func giveBack(application: ObjectIdentifier, device: String) {
        Self.decrement(&byApplication, application)
        Self.decrement(&toDevice, device)
    }

    private static func decrement<Key>(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }

    /// Applications and devices that are remembered: those with a stream.
    var count: Int { byApplication.count + toDevice.count }
}
