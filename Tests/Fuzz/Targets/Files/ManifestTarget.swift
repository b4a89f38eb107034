// SPDX-License-Identifier: Apache-2.0

import Glibc
import SystemPackage

@testable import BatonApplications
@testable import BatonNode

/// Files that applications and the user write: an `Info.plist`, a desktop entry, and the list of shared folders.
///
/// The first byte of an input says which; the rest is the file.
enum ManifestTarget: FuzzTarget {
    static let name = "manifest"
    static let maximumLength = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) throws {
        var input = Input(bytes)
        let kind = input.byte()
        let file = input.remainder()
        switch kind % 3 {
        case 0: try readPropertyList(file)
        case 1: try readDesktopEntry(file)
        case _: readSharedRoots(file)
        }
    }

    private static func readPropertyList(_ file: [UInt8]) throws {
        do throws(ApplicationManifestError) {
            check(try InfoPropertyList(file).manifest(source: nil))
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    private static let entry = Result {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/baton-fuzz-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno(rawValue: errno) }
        return FilePath(platformString: template).appending("org.example.fuzz.desktop")
    }

    private static func readDesktopEntry(_ file: [UInt8]) throws {
        let path = try entry.get()
        let descriptor = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
        _ = try descriptor.closeAfter { try descriptor.writeAll(file) }
        let folders = DesktopEntryFolders(environment: [:])
        do throws(ApplicationManifestError) {
            let manifest = try DesktopApplication.read(path, id: "org.example.fuzz.desktop", in: folders)
            if let manifest { check(manifest) }
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    /// Each name of a file and each word of a command is within its bounds, and is kept as it was read.
    private static func check(_ manifest: ApplicationManifest) {
        expect(DottedName.isIdentifier(manifest.identifier), "\(manifest.identifier) is no identifier")
        expect(manifest.activityTypes.allSatisfy(DottedName.isActivityType), "\(manifest.activityTypes)")
        expect(manifest.activityTypes.count <= ManifestBounds.types, "\(manifest.activityTypes.count) types")
        expect(manifest.command.count <= ManifestBounds.words, "\(manifest.command.count) words")
        expect(!manifest.command.contains { $0.utf8.contains(0) }, "a word that ends early")
        do throws(ApplicationManifestError) {
            let kept = try RegisteredManifest.encode(manifest)
            expect(kept.count < ManifestBounds.fileSize, "a manifest of \(kept.count) bytes")
        } catch {
            fatalError("a manifest that cannot be kept: \(error)")
        }
    }

    private static func readSharedRoots(_ file: [UInt8]) {
        do throws(ConfigurationError) {
            let roots = try SharedRoots(parsing: file).roots
            expect(roots.count <= SharedRoots.bound, "\(roots.count) roots")
            expect(Set(roots.map(\.name)).count == roots.count, "two roots of one name")
            for root in roots {
                expect(SharedRoots.isName(root.name), "\(root.name) is no name")
                expect(root.folder.isAbsolute && !root.folder.string.contains("\n"), "\(root.folder) is no folder")
            }
        } catch {
            expect(!error.description.isEmpty, "an error without a sentence")
        }
    }

    static func seeds() -> [[UInt8]] {
        let list = """
            <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>org.example.$(NAME:lower)a</string>
            <key>NSUserActivityTypes</key><array><string>org.example.note</string></array>
            <key>CFBundleDocumentTypes</key><array><dict><key>NSUbiquitousDocumentUserActivityType</key>
            <string>org.example.text</string><key>CFBundleTypeExtensions</key><array><string>txt</string></array></dict>
            </array><key>BatonCommand</key><array><string>editor</string></array></dict></plist>
            """
        let entry = """
            [Desktop Entry]
            Type=Application
            Name=Note
            Name[de]=Notiz\\s
            Exec="note \\\\"x" %i %c %k %% %U
            Terminal=true
            X-Baton-Types=org.example.note;a\\;b;
            X-Baton-Documents=org.example.text:txt,md;
            X-Baton-Versions=org.example.note:1-3;
            X-Baton-Domains=example.org;*.example.org;
            X-Baton-Team=TEAM
            """
        let plain = "[Desktop Entry]\nType=Application\nExec=note\nX-Baton-Types=org.example.note;\n"
        let roots = [
            "Docs=/srv/docs\n# ours\n\nMusic=~/Music \r\n", "a=/\na=/b", ".a=/b", "a=b", "a=~x", "a=", "a=/\u{7F}",
        ]
        return [[0] + Array(list.utf8), [0] + Array("bplist00".utf8), [0] + Array("{a=(b,c);}".utf8)]
            + [entry, plain].map { [1] + Array($0.utf8) } + roots.map { [2] + Array($0.utf8) }
    }
}
