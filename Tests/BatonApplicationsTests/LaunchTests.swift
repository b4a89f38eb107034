// SPDX-License-Identifier: Apache-2.0

import BatonTestSupport
import Foundation
import Synchronization
import SystemPackage
import Testing

@testable import BatonApplications

/// A home, and a folder of programs in front of the system's.
private struct Desk {
    let folder: ScratchFolder
    let home: FilePath

    init() throws {
        folder = try ScratchFolder("applications")
        home = folder.filePath.appending("home")
        try FileManager.default.createDirectory(atPath: home.string, withIntermediateDirectories: true)
    }

    /// - Parameter answerTime: long enough for a busy machine if every program is expected to answer.
    func launcher(
        _ more: [String: String] = [:], system: Bool = true, answerTime: Duration = .seconds(60)
    ) -> ApplicationLauncher {
        let own = folder.path + "/bin"
        let environment = ["HOME": home.string, "PATH": system ? own + ":/usr/bin:/bin" : own, "KEPT": "k"]
        return ApplicationLauncher(environment: environment.merging(more) { $1 }, answerTime: answerTime)
    }

    func manifest(_ command: [String], needsTerminal: Bool = false) throws -> ApplicationManifest {
        try ApplicationManifest(
            identifier: "org.example.my-editor", name: "Editor", command: command, needsTerminal: needsTerminal,
            source: .registered(from: nil))
    }

    /// Waits until a file beneath the folder is there and whole, which its last line says.
    func written(_ name: String) async throws -> [String] {
        var lines: [String] = []
        try await eventually("\(name) is written") {
            lines = (folder.read(name) ?? "").split(separator: "\n").map(String.init)
            return lines.last == "end"
        }
        return lines
    }
}

@Suite("Launching applications without a service manager")
struct ProcessLaunchTests {
    @Test("arguments as they are, the home folder, the environment, a session of its own and nothing inherited")
    func launch() async throws {
        let desk = try Desk()
        try desk.folder.program(
            "bin/editor",
            """
            out="$HOME/../out"
            { for word; do echo "argument $word"; done
            pwd; echo "type $BATON_ACTIVITY_TYPE kept $KEPT notify [$NOTIFY_SOCKET]"
            echo "session $(cut -d' ' -f6 /proc/$$/stat) process $$"
            ls /proc/$$/fd | tr '\\n' ' '; echo
            readlink /proc/$$/fd/0
            grep -E '^Sig(Blk|Ign)' /proc/$$/status | tr -d '\\t'
            echo end; } > "$out" 2> /dev/null
            exit 7
            """)
        // A child would inherit a descriptor that stays open on exec, and an ignored signal.
        let inherited = fcntl(1, F_DUPFD, 100)
        try #require(inherited >= 100)
        signal(SIGUSR2, SIG_IGN)
        defer {
            close(inherited)
            signal(SIGUSR2, SIG_DFL)
        }
        let ending = Mutex<[ApplicationLauncher.Ending]>([])
        let place = try await desk.launcher(["NOTIFY_SOCKET": "/run/x"]).launch(
            desk.manifest(["editor", "a b", "$HOME", "*", "", "é"]), adding: ["BATON_ACTIVITY_TYPE": "org.example.a"]
        ) { end in
            ending.withLock { $0.append(end) }
        }
        guard case .process(let process) = place else {
            Issue.record("it is \(place)")
            return
        }
        let lines = try await desk.written("out")
        #expect(lines.prefix(5) == ["argument a b", "argument $HOME", "argument *", "argument ", "argument é"])
        #expect(lines[5].hasSuffix("/home"))
        #expect(lines[6] == "type org.example.a kept k notify []")
        #expect(lines[7] == "session \(process) process \(process)")
        // The shell itself has a few from 10 on.
        #expect(!lines[8].split(separator: " ").contains("\(inherited)"), "\(lines[8])")
        #expect(lines[8].split(separator: " ").contains("0"))
        #expect(lines[9] == "/dev/null")
        #expect(lines[10] == "SigBlk:0000000000000000")
        // Signals 32 and 33 are the C library's own, which leaves them ignored.
        let ignored = try #require(UInt64(lines[11].dropFirst("SigIgn:".count), radix: 16))
        #expect(ignored & ~(3 << 31) == 0, "\(lines[11])")
        try await eventually("its end is told") { ending.withLock { $0.count == 1 } }
        #expect(ending.withLock { $0 } == [.exited(7)])
        // Reaped: nothing is left of it, not even a zombie.
        #expect(!FileManager.default.fileExists(atPath: "/proc/\(process)"))
    }

    @Test("a program that is not there, cannot be run, or is none, is told apart")
    func failures() async throws {
        let desk = try Desk()
        try desk.folder.write("x", to: "bin/plain", mode: 0o644)
        try desk.folder.write("\u{7F}ELFx", to: "bin/broken", mode: 0o755)
        try desk.folder.write("x", to: "bin/folder/x")
        func problem(_ command: [String], needsTerminal: Bool = false, system: Bool = true) async -> String {
            do {
                _ = try await desk.launcher(system: system).launch(
                    desk.manifest(command, needsTerminal: needsTerminal))
                return ""
            } catch {
                return error is LaunchError ? "\(error)" : ""
            }
        }
        #expect(await problem([]).contains("without a command"))
        #expect(await problem(["no-such-program"]) == "there is no program no-such-program in PATH")
        #expect(await problem(["/nonexistent/program"]) == "there is no /nonexistent/program")
        #expect(await problem(["bin/plain"]).contains("is no absolute path"))
        #expect(await problem(["plain"]).contains("cannot be run"))
        #expect(await problem(["folder"]).contains("cannot be run"))
        #expect(await problem(["broken"]).contains("could not be started"))
        #expect(await problem(["cat"], needsTerminal: true, system: false).contains("there is no program"))
    }

    @Test("one that wants a terminal gets the desktop's")
    func terminal() async throws {
        let desk = try Desk()
        try desk.folder.program("bin/x-terminal-emulator", "echo \"$@\" > \"$HOME/../t\"; echo end >> \"$HOME/../t\"")
        _ = try await desk.launcher().launch(desk.manifest(["cat", "a b"], needsTerminal: true))
        let cat = try ExecutableSearch(environment: ["PATH": "/usr/bin:/bin"]).find("cat")
        #expect(try await desk.written("t") == ["-e \(cat) a b", "end"])
    }
}

/// A test has no user's systemd, so small scripts take the place of `systemctl` and `systemd-run`. They record their
/// arguments and behave as systemd-run(1) says: the program runs with the variables of `--setenv`, in the working
/// folder, apart from the caller.
@Suite("Launching applications by a service manager")
struct UnitLaunchTests {
    private static let systemctl = """
        [ "$*" = "--user show --property=Version --value" ] || exit 9
        echo 255.4-1
        """

    private static let systemdRun = """
        { for word; do echo "$word"; done; echo end; } > "$HOME/../asked"
        names=
        while [ "$1" != -- ]; do
          case "$1" in --setenv=*) names="$names ${1#--setenv=}";; --working-directory=*) cd "${1#*=}";; esac
          shift
        done
        shift
        set -- env -i $(for name in $names; do eval "echo $name=\\"\\$$name\\""; done) "$@"
        setsid "$@" > /dev/null 2>&1 < /dev/null &
        """

    @Test("a unit with the application's name; values of the environment are no arguments; dollars are doubled")
    func unit() async throws {
        let desk = try Desk()
        try desk.folder.program("bin/systemctl", Self.systemctl)
        try desk.folder.program("bin/systemd-run", Self.systemdRun)
        let editor = try desk.folder.program(
            "bin/editor", "{ pwd; echo \"$BATON_ACTIVITY_TYPE $KEPT [$NOTIFY_SOCKET]\"; echo end; } > \"$HOME/../ran\"")
        let place = try await desk.launcher(["NOTIFY_SOCKET": "/run/x"]).launch(
            desk.manifest(["editor", "a b", "$5 $$"]), adding: ["BATON_ACTIVITY_TYPE": "secret"])
        guard case .unit(let unit) = place else {
            Issue.record("it is \(place)")
            return
        }
        #expect(unit.hasPrefix("app-baton-org.example.my\\x2deditor-") && unit.hasSuffix(".service"))
        let asked = try await desk.written("asked")
        #expect(
            asked == [
                "--user", "--collect", "--quiet", "--unit=\(unit)", "--description=Editor", "--slice=app.slice",
                "--property=Type=exec", "--working-directory=\(desk.home)", "--setenv=BATON_ACTIVITY_TYPE",
                "--setenv=HOME", "--setenv=KEPT", "--setenv=PATH", "--", editor.string, "a b", "$$5 $$$$", "end",
            ])
        let ran = try await desk.written("ran")
        #expect(ran[0].hasSuffix("/home") && ran[1] == "secret k []")
    }

    @Test("what the manager says against it is told")
    func refused() async throws {
        let desk = try Desk()
        try desk.folder.program("bin/systemctl", Self.systemctl)
        try desk.folder.program("bin/systemd-run", "echo 'Failed to start transient service unit: no' >&2; exit 1")
        do {
            _ = try await desk.launcher().launch(desk.manifest(["cat"]))
            Issue.record("it was started")
        } catch let error as LaunchError {
            #expect(error.description.hasSuffix("Failed to start transient service unit: no"))
        }
    }

    @Test(
        "a manager that does not answer is none",
        arguments: [
            "echo 'Failed to connect to bus: No medium found' >&2; exit 1", "echo; exit 0",
            "exec sleep 600",
        ])
    func absent(_ systemctl: String) async throws {
        let desk = try Desk()
        try desk.folder.program("bin/systemctl", systemctl)
        try desk.folder.program("bin/systemd-run", Self.systemdRun)
        try desk.folder.program("bin/editor", "echo end > \"$HOME/../ran\"")
        let isSilent = systemctl.contains("sleep")
        let place = try await desk.launcher(answerTime: isSilent ? .seconds(2) : .seconds(60))
            .launch(desk.manifest(["editor"]))
        guard case .process = place else {
            Issue.record("it is \(place)")
            return
        }
        #expect(try await desk.written("ran") == ["end"])
        #expect(desk.folder.read("asked") == nil)
    }

    @Test("a question that takes too long is ended, with what it started")
    func questions() async throws {
        let desk = try Desk()
        let program = try desk.folder.program("ask", "sleep 600 & echo $! > \"$OUT\"; wait")
        let out = desk.folder.path + "/process"
        let environment = ["PATH": "/usr/bin:/bin", "OUT": out]
        let asked = Task { await ShortProcess.run(program, [], environment: environment, within: .seconds(600)) }
        try await eventually("it runs") { desk.folder.read("process")?.hasSuffix("\n") == true }
        let process = try #require(desk.folder.read("process").flatMap { Int32($0.dropLast()) })
        asked.cancel()
        #expect(await asked.value == nil)
        try await eventually("nothing is left of it") { kill(process, 0) != 0 }
        let late = await ShortProcess.run(program, [], environment: environment, within: .milliseconds(200))
        #expect(late == nil)
        let answer = await ShortProcess.run(
            "/bin/sh", ["-c", "echo a; echo b >&2; exit 3"], environment: environment, within: .seconds(60))
        #expect(answer == ShortProcess.Answer(ending: .exited(3), output: "a\n", errors: "b\n"))
        let flood = await ShortProcess.run(
            "/bin/sh", ["-c", "yes | head -c 20000"], environment: environment, within: .seconds(60))
        #expect(flood == nil)
    }

    @Test("a unit's name has at most 255 bytes")
    func names() {
        #expect(ServiceUnit.name(of: "org.a-b", random: 0xAB) == "app-baton-org.a\\x2db-000000ab.service")
        #expect(ServiceUnit.name(of: String(repeating: "-", count: 200), random: 1).utf8.count <= 255)
    }
}

@Suite("Opening web pages and files")
struct OpeningTests {
    @Test("the address goes to xdg-open, and nothing but addresses of web pages")
    func pages() async throws {
        let desk = try Desk()
        try desk.folder.program("bin/xdg-open", "echo \"$#:$1\" > \"$HOME/../asked\"; echo end >> \"$HOME/../asked\"")
        try await desk.launcher().open(url: "https://example.org/?a=b&c='d'")
        #expect(try await desk.written("asked") == ["1:https://example.org/?a=b&c='d'", "end"])
        for url in [
            "file:///etc/passwd", "javascript:x", "-h", "", "https", "http://a b", "https://a\n", "https:///a",
            "https://bank.example@evil/", "https://bank.example\\@evil/", "https://b\u{E4}nk.example/",
        ] {
            do {
                try await desk.launcher().open(url: url)
                Issue.record("\(url) was opened")
            } catch {
                #expect(!error.description.hasPrefix("xdg-open"), "it was tried")
            }
        }
    }

    @Test("what is not ASCII in an address is escaped")
    func escapes() async throws {
        let desk = try Desk()
        try desk.folder.program("bin/xdg-open", "echo \"$1\" > \"$HOME/../asked\"; echo end >> \"$HOME/../asked\"")
        try await desk.launcher().open(url: "https://example.org/@a/K\u{F6}ln\u{202E}?b@c")
        #expect(try await desk.written("asked") == ["https://example.org/@a/K%C3%B6ln%E2%80%AE?b@c", "end"])
        try await desk.launcher().open(url: "http://example.org/?a={\"b\"}|<c>`d`\\^[1]%41")
        try await eventually("the other is opened") {
            desk.folder.read("asked") == "http://example.org/?a=%7B%22b%22%7D%7C%3Cc%3E%60d%60%5C%5E[1]%41\nend\n"
        }
    }

    @Test("files and folders are opened; what is not there, is a device or would be started is not")
    func files() async throws {
        let desk = try Desk()
        try desk.folder.program("bin/xdg-open", "echo \"$1\" > \"$HOME/../asked\"; echo end >> \"$HOME/../asked\"")
        let file = try desk.folder.write("x", to: "a file")
        try await desk.launcher().open(file: file)
        #expect(try await desk.written("asked").first == file.string)
        let program = try desk.folder.program("hello.txt", "true")
        let entry = try desk.folder.write("[Desktop Entry]", to: "hello.desktop")
        let archive = try desk.folder.write("x", to: "hello.Jar")
        let unnamed = try desk.folder.write("[Desktop Entry]", to: "hello")
        try desk.folder.program(
            "bin/xdg-mime",
            "grep -q unknown \"$3\" && exit 1; [ \"$1 $2\" = 'query filetype' ] || exit 2; "
                + "grep -q silent \"$3\" && exit; "
                + "grep -q generic \"$3\" && [ \"$XDG_CURRENT_DESKTOP\" != X-Generic ] && exit; "
                + "grep -q Desktop \"$3\" && echo 'application/x-desktop; charset=us-ascii' || echo text/plain")
        try await desk.launcher().open(file: file)
        try await desk.launcher().open(file: desk.folder.write("generic", to: "plain"))
        let unanswered = try desk.folder.write("unknown", to: "hello.text")
        let silent = try desk.folder.write("silent", to: "silent.text")
        let generic = try desk.folder.write("generic [Desktop Entry]", to: "generic")
        let places: [FilePath] = ["/nonexistent/file", "/dev/null", "relative"]
        for path in places + [program, entry, archive, unnamed, unanswered, silent, generic] {
            do {
                try await desk.launcher().open(file: path)
                Issue.record("\(path) was opened")
            } catch {
                #expect(!error.description.hasPrefix("xdg-open"), "it was tried")
            }
        }
    }

    @Test("a failure of xdg-open is told; one that goes on is the browser itself, and is left alone")
    func outcomes() async throws {
        let desk = try Desk()
        do {
            try await desk.launcher(system: false).open(url: "http://example.org")
            Issue.record("it was opened")
        } catch {
            #expect(error.description.contains("xdg-utils"))
        }
        try desk.folder.program("bin/xdg-open", "exit 3")
        do {
            try await desk.launcher().open(url: "http://example.org")
            Issue.record("it was opened")
        } catch {
            #expect(error.description == "xdg-open found no program that opens it")
        }
        try desk.folder.program("bin/xdg-open", "echo $$ > \"$HOME/../process\"; exec sleep 600")
        try await desk.launcher().open("http://example.org", watching: .milliseconds(300))
        try await eventually("it runs") { desk.folder.read("process")?.hasSuffix("\n") == true }
        let process = try #require(desk.folder.read("process").flatMap { Int32($0.dropLast()) })
        #expect(kill(process, 0) == 0)
        kill(process, SIGKILL)
    }

    @Test("the browser's name is that of its desktop entry")
    func browser() async throws {
        let desk = try Desk()
        #expect(await desk.launcher(system: false).defaultBrowserName() == nil)
        let data = desk.folder.path + "/data"
        try desk.folder.write(
            "[Desktop Entry]\nType=Application\nName=Monkey\nExec=m\n", to: "data/applications/m.desktop")
        let environment = ["XDG_DATA_DIRS": data]
        try desk.folder.program("bin/xdg-mime", "[ \"$*\" = 'query default x-scheme-handler/https' ] && echo m.desktop")
        #expect(await desk.launcher(environment, system: false).defaultBrowserName() == "Monkey")
        try desk.folder.program("bin/xdg-settings", "[ \"$*\" = 'get default-web-browser' ] && echo gone.desktop")
        #expect(await desk.launcher(environment, system: false).defaultBrowserName() == "Monkey")
        try desk.folder.program("bin/xdg-mime", "exit 1")
        #expect(await desk.launcher(environment, system: false).defaultBrowserName() == nil)
    }
}
