// SPDX-License-Identifier: Apache-2.0

import SystemPackage

/// The key `Exec` of a desktop entry, as the words of a command that opens no file. The application gets the activity
/// from the node.
///
/// Source: Desktop Entry Specification 1.5, "The Exec key".
enum DesktopExec {
    /// - Parameters:
    ///   - line: the value, after its escapes were resolved.
    ///   - name: the value of `%c`.
    ///   - icon: the value of `%i`, behind `--icon`.
    ///   - path: the value of `%k`.
    static func words(
        _ line: String, name: String, icon: String?, path: FilePath
    ) throws(ApplicationManifestError) -> [String] {
        let split: [String]
        do throws(CommandLineSplitter.Problem) {
            split = try CommandLineSplitter.split(line)
        } catch {
            throw .init(error.sentence(about: "its Exec"))
        }
        var words: [String] = []
        for word in split {
            switch word {
            case "%i":
                if let icon, !icon.isEmpty { words += ["--icon", icon] }
            // Codes for files and addresses, which Baton does not pass, and codes that the specification deprecates.
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
                throw .init("its Exec has %\(code.map(String.init) ?? ""), which means nothing; write %% for %")
            }
        }
        return text
    }
}
