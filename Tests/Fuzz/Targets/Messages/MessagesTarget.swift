// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SwiftProtobuf

@testable import BatonDocuments
@testable import BatonMessages
@testable import BatonNode

/// Every message that a peer sends as the payload of OPEN and RESPONSE, or as a record: decoded under the limit of
/// depth.
///
/// The first byte of an input chooses the type.
enum MessagesTarget: FuzzTarget {
    static let name = "messages"
    static let maximumLength = 4096

    private static let types: [any Message.Type] = [
        WireRequest.self, WireResponse.self, WireFailure.self, WireActivitySummary.self, WireDocumentEntry.self,
        WireDevice.self, WireActivityListing.self, WireOfferEvent.self, WireAcceptEvent.self, WireActivityPayload.self,
        WireDocumentUpstream.self, WireOfferUpdate.self, WireAcceptAnswer.self, WireDocumentEvent.self,
    ]

    /// Maps have no order of their own.
    private static let options = {
        var options = BinaryEncodingOptions()
        options.useDeterministicOrdering = true
        return options
    }()

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let type = types[Int(input.byte()) % types.count]
        let encoded = input.remainder()
        try checkRoundTrip(type, encoded)
        if type is WireRequest.Type {
            do throws(HandoffError) {
                if case .documentRanges(let request) = try WireRequest.decode(encoded) { check(request) }
            } catch {
                expect([.invalidRequest, .unsupported].contains(error.code), "\(error)")
            }
        } else if type is WireFailure.Type,
            let failure = try? WireFailure(serializedBytes: encoded, options: MessageLimits.decoding)
        {
            let error = HandoffError(failure)
            expect(HandoffError(error.failure) == error, "\(error) did not survive its message")
            expect(!error.message.isEmpty, "a failure without a sentence")
        } else if type is WireActivitySummary.Type,
            let summary = try? WireActivitySummary(serializedBytes: encoded, options: MessageLimits.decoding)
        {
            guard let bounded = summary.bounded else { return }
            expect(bounded.title.utf8.count <= OfferedActivity.titleBound, "a listed title is too long")
            expect(summary.title.hasPrefix(bounded.title), "a listed title is another one")
        }
    }

    /// A document of seven chunks and a bit, of which another device wants some.
    private static let layout = ChunkLayout(fileSizes: [7 << 20 | 5])

    /// What is sent is what was asked for, and there; all else is refused.
    private static func check(_ request: WireDocumentRangesRequest) {
        guard let layout else { fatalError("a layout of seven chunks") }
        let areThere = request.ranges.allSatisfy { range in
            let (end, overflow) = range.first.addingReportingOverflow(range.count)
            return !overflow && end <= layout.chunkCount
        }
        let isFitting = (1...DocumentWriter.rangeLimit).contains(request.ranges.count) && areThere
        do throws(HandoffError) {
            let ranges = try DocumentService.ranges(of: request, in: layout)
            expect(isFitting, "ranges that are not there were taken: \(ranges)")
            expect(
                ranges.map(\.lowerBound) == request.ranges.map(\.first)
                    && ranges.map { UInt64($0.count) } == request.ranges.map(\.count),
                "other ranges were taken: \(ranges)")
        } catch {
            expect(!isFitting && error.code == .invalidRequest, "refused: \(error)")
        }
    }

    /// A message that was read can be written and read again, and is the same.
    private static func checkRoundTrip<Content: Message>(_: Content.Type, _ encoded: [UInt8]) throws {
        guard let message = try? Content(serializedBytes: encoded, options: MessageLimits.decoding) else { return }
        let once: [UInt8] = try message.serializedBytes(options: options)
        let again = try Content(serializedBytes: once, options: MessageLimits.decoding)
        let twice: [UInt8] = try again.serializedBytes(options: options)
        expect(once == twice, "\(Content.self) changed on its way")
        _ = message.debugDescription
    }

    static func seeds() throws -> [[UInt8]] {
        var seeds: [[UInt8]] = []
        for (number, type) in types.enumerated() {
            for message in samples where Swift.type(of: message) == type {
                seeds.append([UInt8(number)] + (try message.serializedBytes(options: options) as [UInt8]))
            }
        }
        // As deep as is allowed, and deeper: lists in lists.
        for depth in [10, 40] {
            var value = WireValue()
            for _ in 0..<depth {
                var list = WireArrayValue()
                list.elements = [value]
                value.array = list
            }
            let payload = WireActivityPayload.with { $0.userInfo.entries["deep"] = value }
            seeds.append([9] + (try payload.serializedBytes() as [UInt8]))
        }
        return seeds
    }

    private static var samples: [any Message] {
        let id = SampleUserInfo.id
        let requests: [WireRequest.OneOf_Kind] = [
            .activityList(.init()),
            .examination(
                .with {
                    $0.port = 24747
                    $0.gateNonce = id
                    ($0.say, $0.listenFor) = ("abcdefghijk2", "abcdefghijk3")
                }), .payload(.with { $0.activityID = id }),
            .documentManifest(.with { $0.claimID = id }),
            .documentRanges(
                .with {
                    $0.claimID = id
                    $0.ranges = [.with { $0.first = 1 }, .with { $0.count = 1 << 20 }]
                }),
            .documentRanges(
                .with {
                    $0.claimID = id
                    $0.ranges = [
                        .with {
                            $0.first = 6
                            $0.count = 2
                        }, .with { $0.count = 3 },
                    ]
                }),
            .documentRanges(
                .with {
                    $0.ranges = [
                        .with {
                            $0.first = .max
                            $0.count = 2
                        }
                    ]
                }),
            .continuationStream(.with { $0.device = "laptop" }), .continued(.with { $0.claimID = id }),
            .release(.with { $0.claimID = id }), .status(.init()), .activities(.with { $0.watch = true }),
            .offer(
                .with {
                    $0.type = "org.example.note"
                    $0.userInfo = SampleUserInfo.message
                }), .withdraw(.with { $0.idPrefix = "01ab" }),
            .accept(
                .with {
                    $0.activityID = id
                    $0.destination = id
                }), .willSave(.with { $0.device = "laptop" }),
        ]
        let summary = WireActivitySummary.with {
            $0.id = id
            $0.kind = .document
            $0.type = "public.data"
            $0.title = "Märchen.txt"
            $0.documentSize = 1 << 40
            $0.since = 1_760_000_000
        }
        let payload = WireActivityPayload.with {
            $0.summary = summary
            $0.userInfo = SampleUserInfo.message
            $0.webPageURL = "https://example.org/"
        }
        let failure = WireFailure.with {
            $0.code = .claimHeld
            $0.message = "taken"
            $0.device = "desk"
        }
        let responses: [WireResponse.OneOf_Kind] = [
            .failure(failure),
            .examination(
                .with {
                    $0.timeMs = 1_760_000_000_000
                    $0.dialBack = .connected
                    $0.heard = true
                }),
            .payload(
                .with {
                    $0.payload = payload
                    $0.claimID = id
                }), .documentRanges(.with { $0.chunkSize = 1 << 20 }), .willSave(.with { $0.webPageURL = "http://a" }),
        ]
        let rest: [any Message] = [
            failure, summary, payload,
            WireDocumentEntry.with {
                $0.name = id
                $0.size = 1 << 33
                $0.executable = true
            },
            WireDocumentUpstream.with {
                $0.signatures = .with {
                    $0.basis = 3
                    $0.pieces = Data(repeating: 1, count: 40)
                }
            }, WireDocumentUpstream.with { $0.signaturesEnd = .init() },
            WireDocumentUpstream.with {
                $0.report = .with {
                    $0.verifiedBytes = .max
                    $0.bottleneck = 2
                    $0.committed = true
                }
            },
            WireDevice.with {
                $0.name = "desk"
                $0.addresses = ["10.0.0.1", "fd00::1"]
            }, WireActivityListing.with { $0.activity = summary },
            WireOfferUpdate.with {
                $0.offer.type = "org.example.note"
                $0.becomesCurrent = true
            }, WireAcceptAnswer.with { $0.application = "org.example.reader" },
            WireDocumentEvent.with {
                $0.progress.bytes = 3
                $0.progress.total = 5
            }, WireDocumentEvent.with { $0.arrived = id }, WireDocumentEvent.with { $0.failed = failure },
            WireOfferEvent.with { $0.taken.device = "desk" }, WireAcceptEvent.with { $0.payload = payload },
        ]
        return requests.map { kind in WireRequest.with { $0.kind = kind } }
            + responses.map { kind in WireResponse.with { $0.kind = kind } } + rest
    }
}
