// SPDX-License-Identifier: Apache-2.0

import BatonEventLoop
package import SystemPackage

extension ApplicationLauncher {
    /// How long `xdg-open` is watched. On a desktop it hands over and ends; elsewhere it may be the browser itself,
    /// which is then left alone.
    static let openingTime = Duration.seconds(5)

    /// Opens a web page in the user's default browser.
    ///
    /// Characters that are not ASCII, or may not be in an address, are escaped. So the address cannot look like another
    /// one, and no program on the way to the browser interprets it.
    ///
    /// - Parameter url: http or https, without a name or password before its host, which would hide where it leads.
    package func open(url: String) async throws(LaunchError) {
        try await open(Self.pageAddress(url))
    }

    /// The address of a web page as it is passed on; see ``open(url:)``.
    static func pageAddress(_ url: String) throws(LaunchError) -> String {
        let start = url.prefix(8).lowercased()
        guard start.hasPrefix("http://") || start.hasPrefix("https://"),
            url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
        else {
            throw LaunchError("this is no address of a web page")
        }
        let rest = url[url.index(after: url.firstIndex(of: ":") ?? url.startIndex)...].utf8.dropFirst(2)
        // Browsers take a backslash for a slash.
        let authority = rest.prefix { !"/?#".utf8.contains($0) }
        guard !authority.isEmpty, authority.allSatisfy({ $0 < 0x80 && !"@\\".utf8.contains($0) }) else {
            throw LaunchError(
                "\(url.prefix(300)) does not say plainly which site it leads to: open it yourself")
        }
        return escaped(url)
    }

    /// Source: RFC 3987, 3.1, and RFC 3986, appendix A, which has a use for every other character of ASCII.
    private static func escaped(_ url: String) -> String {
        var escaped = ""
        for byte in url.utf8 {
            if byte < 0x80, !"\"<>\\^`{|}".utf8.contains(byte) {
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                escaped += "%" + String(byte, radix: 16, uppercase: true)
            }
        }
        return escaped
    }

    /// Opens a file with the desktop's application for its kind.
    ///
    /// Refuses a file that the desktop would execute, because it came from another device under any name.
    ///
    /// - Parameter file: absolute.
    package func open(file: FilePath) async throws(LaunchError) {
        guard file.isAbsolute, let status = try? file.stat() else {
            throw LaunchError("there is no \(file)")
        }
        guard status.type == .regular || status.type == .directory else {
            throw LaunchError("\(file) is neither a file nor a folder")
        }
        let isExecutable = !status.permissions.isDisjoint(with: [.ownerExecute, .groupExecute, .otherExecute])
        if status.type == .regular {
            let isProgram = isExecutable ? true : try await wouldStart(file)
            guard !isProgram else {
                throw LaunchError("\(file) is a program: look at it, and start it yourself")
            }
        }
        try await open(file.string)
    }

    /// Whether opening a file that has no execute bit would run it: a desktop entry, or a script with an interpreter.
    ///
    /// `xdg-mime` decides as `xdg-open` does, which looks at the first bytes if the name says nothing. The name is
    /// asked as well, since each desktop has an order of its own.
    ///
    /// - Throws: if `xdg-mime` is there and gives no answer, because `xdg-open` would then decide alone.
    private func wouldStart(_ file: FilePath) async throws(LaunchError) -> Bool {
        if let suffix = file.extension, Self.programExtensions.contains(suffix.lowercased()) { return true }
        guard let path = try? search.find("xdg-mime") else { return false }
        // `xdg-mime` prints nothing and exits with 0 if it does not know the desktop, or if the desktop lacks its own
        // program.
        for desktop in [environment["XDG_CURRENT_DESKTOP"], "X-Generic"] {
            var environment = environment
            environment["XDG_CURRENT_DESKTOP"] = desktop
            let answer = await ShortProcess.run(
                path, ["query", "filetype", file.string], environment: environment, within: answerTime)
            // `file`, which answers if there is no database of types, adds parameters.
            guard let answer, answer.hasSucceeded else { continue }
            let type = answer.output.prefix { $0 != ";" && !$0.isWhitespace }
            if type.contains("/") { return Self.programTypes.contains(type.lowercased()) }
        }
        throw LaunchError(
            "xdg-mime does not say what kind of file \(file) is: look at it, and open it yourself")
    }

    private static let programExtensions: Set<String> = [
        "appimage", "bat", "cmd", "com", "desktop", "exe", "jar", "jnlp", "kdelnk", "lnk", "msi",
    ]

    /// Source: shared-mime-info, freedesktop.org.xml, and the names that `file` has for the same.
    private static let programTypes: Set<String> = [
        "application/java-archive", "application/vnd.appimage", "application/vnd.microsoft.portable-executable",
        "application/x-bat", "application/x-desktop", "application/x-dosexec", "application/x-executable",
        "application/x-iso9660-appimage", "application/x-java", "application/x-java-applet",
        "application/x-java-archive", "application/x-java-jnlp-file", "application/x-ms-dos-executable",
        "application/x-ms-shortcut", "application/x-msdownload", "application/x-msdos-program", "application/x-msi",
        "application/x-pie-executable", "application/x-sharedlib",
    ]

    /// The name of the browser that ``open(url:)`` uses; `nil` if the desktop names none.
    package func defaultBrowserName() async -> String? {
        let questions = [
            ("xdg-settings", ["get", "default-web-browser"]),
            ("xdg-mime", ["query", "default", "x-scheme-handler/https"]),
        ]
        for (program, arguments) in questions {
            guard let path = try? search.find(program) else { continue }
            let answer = await ShortProcess.run(
                path, arguments, environment: environment, within: answerTime)
            guard let answer, answer.hasSucceeded else { continue }
            let id = answer.output.split(whereSeparator: \.isWhitespace).first.map(String.init) ?? ""
            if id.isEmpty { continue }
            if let name = DesktopEntryFolders(environment: environment).applicationName(ofEntry: id) { return name }
        }
        return nil
    }

    func open(_ target: String, watching time: Duration = openingTime) async throws(LaunchError) {
        let program: FilePath
        do throws(LaunchError) {
            program = try search.find("xdg-open")
        } catch {
            throw LaunchError("\(error); it comes with the package xdg-utils")
        }
        let (endings, continuation) = AsyncStream.makeStream(of: Ending.self, bufferingPolicy: .bufferingNewest(1))
        _ = try await DetachedProcess.start(
            Command(program: program, arguments: [target]),
            environment: LaunchEnvironment.make(environment, adding: [:]), home: home
        ) { ending in
            continuation.yield(ending)
            continuation.finish()
        }
        switch await value(within: time, of: { await endings.first { _ in true } }) {
        case nil, .exited(0): return
        case .exited(3): throw LaunchError("xdg-open found no program that opens it")
        case .exited(let status): throw LaunchError("xdg-open failed with status \(status)")
        case .signalled(let signal): throw LaunchError("xdg-open was ended by signal \(signal)")
        }
    }
}
