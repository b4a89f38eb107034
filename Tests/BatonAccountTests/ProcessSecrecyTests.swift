// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import CLinux
import Foundation
import SystemPackage
import Testing

@testable import BatonAccount

@Suite("Secrecy of the process")
struct ProcessSecrecyTests {
    @Test func aProtectedProcessMakesNoCore() async {
        // In a process of its own: it cannot be taken back.
        await #expect(processExitsWith: .success) {
            #expect(!ProcessSecrecy.isProtected)
            ProcessSecrecy.protect()
            #expect(ProcessSecrecy.isProtected)
            ProcessSecrecy.protect()
            #expect(ProcessSecrecy.isProtected)
        }
    }

    /// The runtime's backtracer prints registers and the memory that they point to.
    @Test func aProtectedProcessThatCrashesSaysNothingOfItsMemory() async throws {
        setenv("SWIFT_BACKTRACE", "enable=yes,color=no", 1)
        defer { setenv("SWIFT_BACKTRACE", "enable=no", 1) }
        let plain = try await #require(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) { Self.crash() }
        let protected = try await #require(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            ProcessSecrecy.protect()
            Self.crash()
        }
        func isTold(_ result: ExitTest.Result) -> Bool {
            String(decoding: result.standardErrorContent, as: UTF8.self).contains("Registers:")
        }
        let control = String(decoding: plain.standardErrorContent.prefix(500), as: UTF8.self)
        #expect(isTold(plain), "the control: \(control)")
        #expect(!isTold(protected))
    }

    private static func crash() { UnsafeMutablePointer<Int>(bitPattern: 16)?.pointee = 1 }

    /// Whether this process runs under the thread sanitizer.
    private static let isSanitized = dlsym(nil, "__tsan_init") != nil

    @Test(.disabled(if: isSanitized, "the thread sanitizer has mlock(2) do nothing"))
    func secretsAreKeptOutOfCoresAndSwap() throws {
        let secret = SecretBytes.random(count: 32)
        let flags = try secret.withUnsafeBytes { bytes in
            let address = UInt(bitPattern: bytes.baseAddress)
            // Foundation reads no more than one page of such a file at once.
            let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/smaps"))
            var content = Data()
            while let part = try file.read(upToCount: 1 << 16), !part.isEmpty { content += part }
            let maps = String(decoding: content, as: UTF8.self)
            var isInside = false
            for line in maps.split(separator: "\n") {
                let range = line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
                if range.count == 2 { isInside = (range[0]..<range[1]).contains(address) }
                if isInside, line.hasPrefix("VmFlags:") {
                    return line.split(separator: " ").dropFirst().map(String.init)
                }
            }
            return []
        }
        // proc_pid_smaps(5): do not include in a core dump; pages are locked.
        #expect(flags.contains("dd"), "\(flags)")
        #expect(flags.contains("lo"), "\(flags)")
    }

    @Test func theAccountKeyIsInNoFileOfTheAccount() throws {
        let scratch = try ScratchFolder("secrecy")
        defer { scratch.remove() }
        let folder = scratch.path + "/account"
        let store = AccountStore(folder: FilePath(folder))
        let (_, key) = try store.make(deviceName: "laptop")
        let text = key.formatted().withUnsafeBytes { Data($0) }
        let compact = Data(text.filter { $0 != UInt8(ascii: "-") })
        let raw = key.secret.withUnsafeBytes { Data($0) }
        // The secrets that can enrol devices: the forms of the key, and the authority's key that is derived from it.
        let authority = AccountSecrets(key).certificateAuthoritySeed.withUnsafeBytes { Data($0) }
        let forms = [text, compact, compact.dropFirst(7), raw, raw.base64EncodedData(), authority]
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder)
        #expect(!files.isEmpty)
        for file in files {
            guard let content = FileManager.default.contents(atPath: folder + "/" + file) else { continue }
            for form in forms { #expect(content.range(of: form) == nil, "\(file)") }
        }
    }
}

extension ProcessSecrecy {
    fileprivate static var isProtected: Bool {
        var limit = rlimit()
        return baton_is_dumpable() == 0
            && getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 && limit.rlim_cur == 0
    }
}
