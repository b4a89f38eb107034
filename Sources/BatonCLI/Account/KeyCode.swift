// SPDX-License-Identifier: Apache-2.0

import BatonAccount
import CLinux
import CQRencode

enum KeyCode {
    /// The light modules around a code that scanners need (ISO/IEC 18004, section 5.3.8).
    private static let margin = 4
    /// The most modules of a row. The 55 characters of a key give 29.
    private static let maximumWidth = 57

    /// Returns the lines of the code: 37 columns, 19 lines, light on dark.
    ///
    /// - Throws: if libqrencode is not installed.
    static func drawing(of key: AccountKey) throws(CommandError) -> SecretBytes {
        var library = shim_qr()
        guard shim_qr_load(&library) != 0 else {
            throw .failed("a QR code is drawn by libqrencode, which is not here: install libqrencode4")
        }
        var width = 0
        let modules = SecretBytes(count: maximumWidth * maximumWidth) { modules in
            width = encode(key, with: library, into: modules)
        }
        // Below this frame are the copies that the library made on the stack.
        baton_wipe_stack()
        guard width > 0 else { throw .failed("the QR code cannot be drawn: there is no memory for it") }
        return draw(modules, width)
    }

    @inline(never)
    private static func encode(
        _ key: AccountKey, with library: shim_qr, into modules: UnsafeMutableRawBufferPointer
    ) -> Int {
        let text = key.formatted()
        // Capitals take 5.5 bits each, and small letters 8.
        let capitals = SecretBytes(count: text.count + 1) { target in
            text.withUnsafeBytes { text in
                for (index, byte) in text.enumerated() {
                    target[index] = (0x61...0x7a).contains(byte) ? byte - 0x20 : byte
                }
            }
        }
        var library = library
        return capitals.withUnsafeBytes { capitals in
            Int(
                shim_qr_encode(
                    &library, capitals.baseAddress?.assumingMemoryBound(to: CChar.self),
                    modules.baseAddress?.assumingMemoryBound(to: UInt8.self), modules.count))
        }
    }

    /// Two rows of modules in each line, as half blocks. A light module is drawn, since most terminals are dark.
    private static func draw(_ modules: SecretBytes, _ width: Int) -> SecretBytes {
        let size = width + 2 * margin
        let (full, upper, lower) = (Array("█".utf8), Array("▀".utf8), Array("▄".utf8))
        func draw(_ modules: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer?) -> Int {
            func isLight(_ row: Int, _ column: Int) -> Bool {
                let (row, column) = (row - margin, column - margin)
                guard (0..<width).contains(row), (0..<width).contains(column) else { return row < width + margin }
                return modules[row * width + column] == 0
            }
            var count = 0
            func append(_ bytes: [UInt8]) {
                if let target { for (index, byte) in bytes.enumerated() { target[count + index] = byte } }
                count += bytes.count
            }
            for row in stride(from: 0, to: size, by: 2) {
                for column in 0..<size {
                    switch (isLight(row, column), isLight(row + 1, column)) {
                    case (true, true): append(full)
                    case (true, false): append(upper)
                    case (false, true): append(lower)
                    case (false, false): append([UInt8(ascii: " ")])
                    }
                }
                append([UInt8(ascii: "\n")])
            }
            return count
        }
        return modules.withUnsafeBytes { modules in
            SecretBytes(count: draw(modules, into: nil)) { _ = draw(modules, into: $0) }
        }
    }
}
