// SPDX-License-Identifier: Apache-2.0

@testable import BatonProtocol

/// The allowed behaviour of a session by the specification: kept beside the session from the bytes that went in and
/// came out.
struct SessionModel {
    private struct Life {
        var isLocal: Bool
        var isAnswered = false
        var isFinished = false
        var isReset = false
        var isClosed = false
    }

    private let role: Role
    private let limits: Limits

    // What the peer said.
    private var input = FrameReader()
    private var hello: (dataFrame: UInt64, connection: UInt64, stream: UInt64)?
    private var credit: [UInt32: UInt64] = [:]
    private var dataReceived: UInt64 = 0
    private var dataOfStream: [UInt32: UInt64] = [:]

    // What the session said.
    private var output = FrameReader()
    private var framesWritten = 0
    private var granted: [UInt32: UInt64] = [:]
    private var sent: [UInt32: UInt64] = [:]
    private var isGoAwayOfFailureWritten = false

    // Its output to its driver.
    private var delivered: [UInt32: UInt64] = [:]
    private var lives: [UInt32: Life] = [:]
    private var highestPeer: UInt32 = 0
    private var isHelloReported = false
    private var isDead = false

    init(role: Role, limits: Limits) {
        self.role = role
        self.limits = limits
        granted[0] = UInt64(limits.initialConnectionWindow)
    }

    /// The peer is about to send these bytes.
    mutating func feed(_ bytes: some Collection<UInt8>) {
        var reader = input
        var hello = hello
        var credit = credit
        var dataReceived = dataReceived
        var dataOfStream = dataOfStream
        reader.read(bytes) { header in
            guard header.type == 4 else { return }
            dataReceived += UInt64(header.length)
            dataOfStream[header.stream, default: 0] += UInt64(header.length)
        } frame: { frame in
            if frame.type == 1, hello == nil, frame.length >= 56 {
                hello = (frame.number(24..<28), frame.number(40..<48), frame.number(48..<56))
                credit[0] = frame.number(40..<48)
            } else if frame.type == 5 {
                credit[frame.stream] = max(credit[frame.stream] ?? 0, frame.number(0..<8))
            }
        }
        (input, self.hello, self.credit, self.dataReceived) = (reader, hello, credit, dataReceived)
        self.dataOfStream = dataOfStream
    }

    /// Bytes that the peer may still send on a stream, by the stream's credit and the connection's.
    func creditLeft(of stream: UInt32) -> Int {
        let ofStream = granted[stream] ?? UInt64(limits.initialStreamWindow)
        let left = min(Int64(ofStream) - Int64(dataOfStream[stream] ?? 0), Int64(granted[0] ?? 0) - Int64(dataReceived))
        return Int(max(left, 0))
    }

    /// The session took what was fed.
    func checkReceived(isDead: Bool) {
        expect(isDead || dataReceived <= granted[0] ?? 0, "DATA beyond the connection's credit was taken")
    }

    mutating func deliver(_ id: StreamID, _ count: Int) {
        guard let life = lives[id.rawValue] else { fatalError("bytes of a stream that nobody heard of") }
        expect(!life.isClosed && !life.isReset && !life.isFinished, "bytes behind the end of stream \(id)")
        expect(!life.isLocal || life.isAnswered, "bytes before the answer on stream \(id)")
        delivered[id.rawValue, default: 0] += UInt64(count)
        delivered[0, default: 0] += UInt64(count)
        let bound = granted[id.rawValue] ?? UInt64(limits.initialStreamWindow)
        expect(delivered[id.rawValue] ?? 0 <= bound, "stream \(id) was taken beyond its credit")
        expect(delivered[0] ?? 0 <= granted[0] ?? 0, "the connection was taken beyond its credit")
    }

    /// The application opened a stream.
    mutating func open(_ id: StreamID) {
        expect(role.opens(id) && lives[id.rawValue] == nil, "stream \(id) was opened twice, or with the wrong parity")
        lives[id.rawValue] = Life(isLocal: true)
    }

    /// The session wrote these bytes.
    mutating func write(_ bytes: UnsafeRawBufferPointer) {
        var reader = output
        var frames: [FrameReader.Frame] = []
        reader.read(bytes) { _ in
        } frame: {
            frames.append($0)
        }
        output = reader
        for frame in frames { checkWritten(frame) }
    }

    private mutating func checkWritten(_ frame: FrameReader.Frame) {
        expect((framesWritten == 0) == (frame.type == 1), "HELLO is the first frame and no other")
        expect(!isGoAwayOfFailureWritten, "a frame behind the GOAWAY of a failure")
        framesWritten += 1
        switch frame.type {
        case 1:
            expect(frame.number(40..<48) == UInt64(limits.initialConnectionWindow), "HELLO states another window")
            expect(frame.number(48..<56) == UInt64(limits.initialStreamWindow), "HELLO states another window")
        case 2, 3:
            expect(frame.length <= Limits.messageBytes, "a message of \(frame.length) bytes")
        case 4:
            expect(frame.length > 0 && frame.length <= hello?.dataFrame ?? 0, "DATA of \(frame.length) bytes")
            sent[0, default: 0] += UInt64(frame.length)
            sent[frame.stream, default: 0] += UInt64(frame.length)
            let bound = max(credit[frame.stream] ?? 0, hello?.stream ?? 0)
            expect(sent[frame.stream] ?? 0 <= bound, "more was sent on stream \(frame.stream) than the peer allowed")
            expect(sent[0] ?? 0 <= credit[0] ?? 0, "more was sent on the connection than the peer allowed")
        case 5:
            let initial = UInt64(frame.stream == 0 ? limits.initialConnectionWindow : limits.initialStreamWindow)
            let maximum = UInt64(frame.stream == 0 ? limits.maximumConnectionWindow : limits.activeStreamWindow)
            let offset = frame.number(0..<8)
            expect(offset > granted[frame.stream] ?? initial, "CREDIT that allows nothing new")
            // DATA that went to no application counts as well, so the bound of the connection is what was received.
            let used = frame.stream == 0 ? dataReceived : delivered[frame.stream] ?? 0
            expect(offset <= used + max(initial, maximum), "CREDIT far beyond the window")
            granted[frame.stream] = offset
        case 6: expect(frame.length == 0, "END with a payload")
        case 7: expect(frame.length == 4, "RESET of \(frame.length) bytes")
        case 8, 9: expect(frame.length == 8 && frame.stream == 0, "a misshapen PING or PONG")
        case 10:
            expect(frame.length == 8 && frame.stream == 0, "a misshapen GOAWAY")
            isGoAwayOfFailureWritten = isDead
        case _: fatalError("a frame of type \(frame.type) was written")
        }
    }

    /// All output is taken.
    func checkWhole() {
        expect(output.isBetweenFrames, "the output ends within a frame")
    }

    mutating func hear(_ event: Event) {
        expect(!isDead, "\(event) behind the end of the connection")
        switch event {
        case .helloReceived:
            expect(!isHelloReported, "HELLO was reported twice")
            isHelloReported = true
        case .opened(let id, let request):
            expect(!role.opens(id) && id.rawValue > highestPeer, "the peer opened stream \(id), which is not its next")
            expect(request.count <= Limits.messageBytes, "a request of \(request.count) bytes")
            highestPeer = id.rawValue
            lives[id.rawValue] = Life(isLocal: false)
        case .responded(let id, let message):
            expect(message.count <= Limits.messageBytes, "an answer of \(message.count) bytes")
            change(id) { life in
                expect(life.isLocal && !life.isAnswered, "an answer that was not asked for, on stream \(id)")
                life.isAnswered = true
            }
        case .finished(let id):
            change(id) { life in
                expect(!life.isFinished, "stream \(id) was finished twice")
                life.isFinished = true
            }
        case .reset(let id, _), .stopped(let id, _):
            change(id) { $0.isReset = true }
        case .closed(let id):
            expect(lives[id.rawValue]?.isClosed == false, "stream \(id) was closed twice, or never opened")
            lives[id.rawValue]?.isClosed = true
        case .goAwayReceived, .drained:
            break
        case .dead:
            isDead = true
        }
        expect(isHelloReported || isDead || !isAboutPeer(event), "\(event) before HELLO")
    }

    /// Whether the event says that the peer did something.
    private func isAboutPeer(_ event: Event) -> Bool {
        switch event {
        case .opened, .responded, .finished, .stopped, .goAwayReceived: true
        case .helloReceived, .reset, .closed, .drained, .dead: false
        }
    }

    private mutating func change(_ id: StreamID, _ body: (inout Life) -> Void) {
        guard var life = lives[id.rawValue], !life.isClosed, !life.isReset else {
            fatalError("something happened to stream \(id), which is gone")
        }
        body(&life)
        lives[id.rawValue] = life
    }
}
