// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// The key `Exec` of a desktop entry, as words of a command that opens no file: what goes on comes from the node.
///
/// Source: Desktop Entry Specification 1.5, "The Exec key".
enum DesktopExec {
    /// - Parameters:
    ///   - line: escapes of the file resolved already.
    ///   - name: what `%c` stands for.
    ///   - icon: what `%i` stands for, behind `--icon`.
    ///   - path: what `%k` stands for.
    static func words(
        _ line: String, name: String, icon: String?, path: FilePath
    ) throws(ApplicationManifestError) -> [String] {
        let split: [String]
        do throws(CommandLineSplitter.Problem) {
            split = try CommandLineSplitter.split(line)
        } catch {
            throw .malformed(error.sentence(about: "its Exec"))
        }
        var words: [String] = []
        for word in split {
            switch word {
            case "%i":
                if let icon, !icon.isEmpty { words += ["--icon", icon] }
            // Files and addresses, of which there are none, and what the specification has given up.
            case "%f", "%F", "%u", "%U", "%d", "%D", "%n", "%N", "%v", "%m":
                break
            case _:
                words.append(try expanded(word, name: name, path: path))
            }
        }
        return words
    }

    private static func expanded(
        _ word: String, name: String, path: FilePath
    ) throws(ApplicationManifestError) -> String {
        var text = ""
        var rest = word.makeIterator()
        while let character = rest.next() {
            guard character == "%" else {
                text.append(character)
                continue
            }
            let code = rest.next()
            switch code {
            case "%": text += "%"
            case "c": text += name
            case "k": text += path.string
            case "i", "f", "F", "u", "U", "d", "D", "n", "N", "v", "m": break
            case _:
                throw .malformed("its Exec has %\(code.map(String.init) ?? ""), which means nothing; write %% for %")
            }
        }
        return text
    }
}
