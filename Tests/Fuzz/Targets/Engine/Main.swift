// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// libFuzzer's entry point: runs the engine with the command line, and calls `test` for every input.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutablePointer<Arguments?>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

private typealias Arguments = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

/// Every target, in the order in which Scripts/fuzz runs them.
private let targets: [any FuzzTarget.Type] = [
    SessionTarget.self, MessagesTarget.self, RecordsTarget.self, UserInfoMessageTarget.self, UserInfoJSONTarget.self,
    AdvertisementTarget.self, AccountKeyTarget.self, SealedKeyTarget.self, PairingTarget.self,
    TextRecordTarget.self, AnnouncedTextTarget.self, ReplayGuardTarget.self, RevocationTarget.self, JoiningTarget.self,
    LocalRequestTarget.self, DocumentTarget.self, ChunkRecordsTarget.self, TreeTarget.self, JournalTarget.self,
    DeltaTarget.self, UpstreamTarget.self, CompressionTarget.self, NamesTarget.self, SharedFilesTarget.self,
    ManifestTarget.self, TLSTarget.self, TLSClientTarget.self, CertificateTarget.self, CMSTarget.self,
    SiteAssociationTarget.self, ResponseTarget.self,
]

nonisolated(unsafe) private var chosen: any FuzzTarget.Type = SessionTarget.self  // reason: set once, before the engine

/// The name that SwiftPM gives the executable's `main`: libFuzzer brings one of its own.
///
///     BatonFuzz --list                        names and the most bytes of an input, a line each
///     BatonFuzz --seeds=FOLDER                writes the seeds of every target to FOLDER/NAME
///     BatonFuzz --mutate=COUNT [--seed=N]     checks COUNT mutated advertisements
///     BatonFuzz --target=NAME [CORPUS...] [-FLAG OF libFuzzer...]
///
/// libFuzzer ignores arguments with two dashes, and hands them on to the processes that it starts.
@_cdecl("BatonFuzz_main")
func start(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    var options: [String: String] = [:]
    for index in 1..<max(1, Int(count)) {
        guard let argument = arguments?[index].map({ String(cString: $0) }), argument.hasPrefix("--") else { continue }
        let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1).map(String.init)
        options[parts.first ?? ""] = parts.count > 1 ? parts[1] : ""
    }
    do {
        if options["list"] != nil {
            for target in targets { print(target.name, target.maximumLength) }
        } else if let folder = options["seeds"] {
            try Seeds.write(targets, to: folder)
        } else if let text = options["mutate"], let rounds = Int(text) {
            let seed = try options["seed"].map { text in
                guard let seed = UInt64(text) else { throw FuzzError("\(text) is no seed") }
                return seed
            }
            try AdvertisementMutation.run(rounds: rounds, seed: seed ?? UInt64.random(in: 0 ... .max))
        } else if let target = targets.first(where: { $0.name == options["target"] }) {
            chosen = target
            var (count, arguments) = (count, arguments)
            return runDriver(&count, &arguments) { bytes, count in
                runChosen(UnsafeRawBufferPointer(start: bytes, count: count))
                return 0
            }
        } else {
            throw FuzzError("which target? --list names them")
        }
        return 0
    } catch {
        let message = "BatonFuzz: \(error)\n"
        _ = try? FileDescriptor.standardError.writeAll(message.utf8)
        return 2
    }
}

/// Runs the chosen target on one input; what it throws is a finding, like a trap.
private func runChosen(_ bytes: UnsafeRawBufferPointer) {
    do {
        try chosen.run(bytes)
    } catch {
        fatalError("\(error)")
    }
}
