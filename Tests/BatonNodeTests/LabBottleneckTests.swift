// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Testing

/// Both ends name the stage that a transfer waits for when one is really slow. A preloaded library delays the calls of
/// one node, or the link is limited.
@Suite(.serialized, .lab, .timeLimit(.minutes(4)))
struct LabBottleneckTests {
    /// A stage that is held up, and what both ends call it then.
    private struct Stage {
        /// The host whose node is slow, and in what; nil for the link.
        let slow: (host: Int, what: String)?
        let atOrigin: String
        let atContinuing: String
    }

    private static let stages = [
        Stage(slow: (1, "SLOW_READ"), atOrigin: "disk here", atContinuing: "disk there"),
        Stage(slow: (2, "SLOW_WRITE"), atOrigin: "disk there", atContinuing: "disk here"),
        Stage(slow: nil, atOrigin: "link", atContinuing: "link"),
        Stage(slow: (1, "SLOW_CPU"), atOrigin: "CPU here", atContinuing: "CPU there"),
        Stage(slow: (2, "SLOW_CPU"), atOrigin: "CPU there", atContinuing: "CPU here"),
        Stage(slow: (1, "SLOW_TLS"), atOrigin: "CPU here", atContinuing: "CPU there"),
        Stage(slow: (2, "SLOW_TLS"), atOrigin: "CPU there", atContinuing: "CPU here"),
    ]

    /// Microseconds that a MiB takes more.
    private static let delay = 120_000
    private static let size = 24 << 20

    /// Holds up what `SLOW_...` names, by its value in microseconds for each MiB. The CPU is kept busy, disks wait.
    private static let library = #"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdint.h>
        #include <stdlib.h>
        #include <time.h>
        #include <unistd.h>

        typedef struct { uint64_t low, high; } hash;

        static long slow(const char *name, size_t count) {
            const char *value = getenv(name);
            return value && count >= 4096 ? (long)((double)atol(value) * count / (1 << 20)) : 0;
        }

        static void spin(long microseconds) {
            struct timespec start, now;
            clock_gettime(CLOCK_MONOTONIC, &start);
            do clock_gettime(CLOCK_MONOTONIC, &now);
            while ((now.tv_sec - start.tv_sec) * 1000000L + (now.tv_nsec - start.tv_nsec) / 1000 < microseconds);
        }

        ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
            static ssize_t (*real)(int, void *, size_t, off_t);
            if (!real) real = dlsym(RTLD_NEXT, "pread");
            usleep(slow("SLOW_READ", count));
            return real(file, bytes, count, offset);
        }

        ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
            static ssize_t (*real)(int, const void *, size_t, off_t);
            if (!real) real = dlsym(RTLD_NEXT, "pwrite");
            usleep(slow("SLOW_WRITE", count));
            return real(file, bytes, count, offset);
        }

        int SSL_write_ex(void *session, const void *bytes, size_t count, size_t *written) {
            static int (*real)(void *, const void *, size_t, size_t *);
            if (!real) real = dlsym(RTLD_NEXT, "SSL_write_ex");
            int result = real(session, bytes, count, written);
            if (result > 0) spin(slow("SLOW_TLS", *written));
            return result;
        }

        int SSL_read_ex(void *session, void *bytes, size_t count, size_t *read) {
            static int (*real)(void *, void *, size_t, size_t *);
            if (!real) real = dlsym(RTLD_NEXT, "SSL_read_ex");
            int result = real(session, bytes, count, read);
            if (result > 0) spin(slow("SLOW_TLS", *read));
            return result;
        }

        // The library has each of them twice: one chooses by what the processor can do.
        #define HASH(name) \
            hash name(const void *bytes, size_t count) { \
                static hash (*real)(const void *, size_t); \
                if (!real) real = dlsym(RTLD_NEXT, #name); \
                spin(slow("SLOW_CPU", count)); \
                return real(bytes, count); \
            }
        #define UPDATE(name) \
            int name(void *state, const void *bytes, size_t count) { \
                static int (*real)(void *, const void *, size_t); \
                if (!real) real = dlsym(RTLD_NEXT, #name); \
                spin(slow("SLOW_CPU", count)); \
                return real(state, bytes, count); \
            }
        HASH(XXH3_128bits)
        HASH(XXH3_128bits_dispatch)
        UPDATE(XXH3_128bits_update)
        UPDATE(XXH3_128bits_update_dispatch)
        """#

    /// - Returns: the path of the library.
    private static func makeLibrary(in lab: HandoffLab) async throws -> String {
        let source = lab.folder.appendingPathComponent("slow.c")
        let path = lab.folder.appendingPathComponent("slow.so").path
        try library.write(to: source, atomically: true, encoding: .utf8)
        let compiling = try lab.startProgram(1, ["cc", "-shared", "-fPIC", "-O1", "-o", path, source.path, "-ldl"])
        #expect(try await compiling.end().status == 0, "\(compiling.errors)")
        return path
    }

    @Test("Both ends name the slow stage")
    func names() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let library = try await Self.makeLibrary(in: lab)
        let document = try lab.document("film", bytes: Self.size, seed: 50)
        for (number, stage) in Self.stages.enumerated() {
            var nodes: [HostCommand] = []
            for host in 1...2 {
                let slow = stage.slow?.host == host ? "\(stage.slow?.what ?? "")=\(Self.delay)" : "NOTHING=1"
                nodes.append(
                    try await lab.startNode(host, wrapper: ["env", "LD_PRELOAD=\(library)", slow]).command)
            }
            if stage.slow == nil { try lab.lab.command("rate", "1", "60") }
            let offer = try await lab.offer(1, document.path)
            let folder = try lab.destination("\(number)")
            let accepted = try await lab.run(2, "accept", offer.id, "--wait", "30", "--json", "--to", folder.path)
            #expect(accepted.status == 0, "\(accepted.errors)")
            try await offer.command.event("continued")
            for (place, events, name) in [
                ("origin", offer.command.events, stage.atOrigin),
                ("continuing device", accepted.events, stage.atContinuing),
            ] {
                let named = events.compactMap(\.bottleneck).filter { $0 != "unknown" }
                let right = named.count { $0 == name }
                #expect(right * 2 > named.count, "\(name) was wanted at the \(place), and it said \(named)")
            }
            if stage.slow == nil { try lab.lab.command("rate", "1", "off") }
            try await offer.command.end(by: SIGTERM)
            for node in nodes { try await node.end(by: SIGTERM) }
        }
    }

    @Test("When the cable is pulled after a disk was slow, both ends say so while nothing comes")
    func stalledLink() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let library = try await Self.makeLibrary(in: lab)
        let nodes = [
            try await lab.startNode(1).command,
            try await lab.startNode(2, wrapper: ["env", "LD_PRELOAD=\(library)", "SLOW_WRITE=\(Self.delay)"]).command,
        ]
        let document = try lab.document("film", bytes: 3 * Self.size, seed: 53)
        let offer = try await lab.offer(1, document.path)
        let accepting = try lab.start(
            2, "accept", offer.id, "--wait", "30", "--json", "--to", try lab.destination("there").path)
        try await offer.command.event("progress") { $0.bottleneck == "disk there" }
        try await accepting.event("progress") { $0.bottleneck == "disk here" }
        try lab.lab.command("link", "2", "down")
        // Long before either gives up.
        for (place, command) in [("origin", offer.command), ("continuing device", accepting)] {
            try await eventually("the \(place) says that it is the link", within: .seconds(12)) {
                command.events.last { $0.event == "progress" }?.bottleneck == "link"
            }
        }
        try lab.lab.command("link", "2", "up")
        let ended = try await accepting.end()
        #expect(ended.status == 0, "\(ended.errors)")
        try await offer.command.event("continued")
        try await offer.command.end(by: SIGTERM)
        for node in nodes { try await node.end(by: SIGTERM) }
    }

    @Test("While an older copy is read, both ends say whose disk is waited for")
    func olderCopy() async throws {
        let lab = try await HandoffLab()
        defer { lab.down() }
        let library = try await Self.makeLibrary(in: lab)
        // A build without optimisation computes as long as the disk takes for the other stages.
        let slow = "SLOW_READ=\(4 * Self.delay)"
        let nodes = [
            try await lab.startNode(1).command,
            try await lab.startNode(2, wrapper: ["env", "LD_PRELOAD=\(library)", slow]).command,
        ]
        // They have nothing in common: the copy is read to know that, for 4 s, and nothing is built upon it.
        let document = try lab.document("film", bytes: 1 << 20, seed: 51)
        let copy = try lab.document("older film", bytes: 8 << 20, seed: 52)
        let offer = try await lab.offer(1, document.path)
        let accepted = try await lab.run(
            2, "accept", offer.id, "--wait", "30", "--json", "--to", try lab.destination("there").path, "--against",
            copy.path)
        #expect(accepted.status == 0, "\(accepted.errors)")
        try await offer.command.event("continued")
        for (place, events, name, least) in [
            ("origin", offer.command.events, "disk there", 2), ("continuing device", accepted.events, "disk here", 3),
        ] {
            let named = events.filter { $0.bytes == 0 }.compactMap(\.bottleneck).filter { $0 != "unknown" }
            #expect(named.count >= least && Set(named) == [name], "the \(place) said \(named)")
        }
        try await offer.command.end(by: SIGTERM)
        for node in nodes { try await node.end(by: SIGTERM) }
    }
}
