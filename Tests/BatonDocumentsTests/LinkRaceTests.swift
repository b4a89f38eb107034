// SPDX-License-Identifier: Apache-2.0

import BatonProtocol
import BatonTestSupport
import CLinux
import Foundation
import Glibc
import SystemPackage
import Testing

@testable import BatonDocuments

/// Another process that puts links into a destination as fast as it can, and takes them away.
///
/// In the style of the races of CVE-2021-30465 and CVE-2023-27320: a look at a name and its use are two moments.
struct Attacker {
    private let process: ChildProcess

    /// - Parameter script: a program for Perl; `$target` and `$folder` are the file to be hit and the destination.
    init(_ script: String, target: FilePath, folder: FilePath) throws {
        // Its tenth round leaves a file beside the target. It ends with the process of the tests, however that ends.
        let program = """
            my ($target, $folder) = @ARGV;
            my $parent = getppid();
            for (my $n = 0; getppid() == $parent; $n++) {
                if ($n == 10) { open(my $f, ">", "$target.attacked"); }
                \(script)
            }
            """
        process = try ChildProcess(["perl", "-e", program, target.string, folder.string])
    }
}

@Suite("Races with links in the destination")
struct LinkRaceTests {
    /// A link under the document's name comes and goes.
    static let underTheName = #"symlink($target, "$folder/report.pdf"); unlink("$folder/report.pdf");"#
    /// Every part file is exchanged for a link.
    static let underThePartName = #"""
        opendir(my $d, $folder) or next;
        for my $n (grep { /baton-part$/ } readdir $d) { unlink("$folder/$n"); symlink($target, "$folder/$n"); }
        closedir $d;
        """#

    let fixture: WriterFixture
    let content = DocumentFixture.content(1000, seed: 60)

    init() throws {
        fixture = try WriterFixture()
    }

    private func isLink(_ path: FilePath) -> Bool {
        var status = stat()
        return lstat(path.string, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    @Test(
        "Another process's links are never written through and never replaced",
        arguments: [underTheName, underThePartName])
    func race(_ script: String) async throws {
        let target = try fixture.scratch.makeFile("target", [7])
        let attacker = try Attacker(script, target: target, folder: fixture.folder)
        let hasStarted = await eventually { access(target.string + ".attacked", F_OK) == 0 }
        #expect(hasStarted)
        var outcomes: [DocumentError.Code?: Int] = [:]
        for _ in 0..<200 {
            let code = await DocumentFixture.code {
                let writer = try await fixture.writer(1000)
                try await writer.write(DocumentFixture.records(content))
                let path = try await writer.commit()
                // What is reported as received is what was received, and no link. (The attacker may take it away.)
                #expect(!isLink(path) || script == Self.underTheName)
            }
            outcomes[code, default: 0] += 1
            #expect(try DocumentFixture.read(target) == [7])
            unlink(fixture.document.string)
        }
        withExtendedLifetime(attacker) {}
        #expect(
            Set(outcomes.keys).isSubset(of: [nil, .destinationExists, .destinationMissing, .writeFailed]), "\(outcomes)"
        )
        #expect(try SystemCalls.status(at: target).st_size == 1)
    }

    @Test("A writer that opens the name itself is led out by the same race")
    func raceWithoutTheDefence() async throws {
        let target = try fixture.scratch.makeFile("target", [7])
        let attacker = try Attacker(Self.underTheName, target: target, folder: fixture.folder)
        let isHit = await eventually {
            // Each is a chance, and a busy machine has few turns.
            for _ in 0..<100 {
                let number = open(fixture.document.string, O_WRONLY | O_CREAT, 0o600)
                guard number >= 0 else { continue }
                _ = write(number, [UInt8(1), 2, 3], 3)
                close(number)
            }
            return (try? SystemCalls.status(at: target).st_size) == 3
        }
        withExtendedLifetime(attacker) {}
        #expect(isHit)
    }
}
