/// How names that came from a disk or from a peer are shown to people.
///
/// A file's name is bytes. Shown raw it could move the cursor, change the terminal's title or, with the controls of
/// right-to-left writing, pretend another extension.
public enum NameDisplay {
    /// The name with every character escaped that does not show as itself.
    ///
    /// Control and format characters and line separators become `\u{…}`, bytes that are no UTF-8 become `\xNN`, and a
    /// backslash is doubled, so that the result is unambiguous. The two joiners that scripts and emoji need stay.
    public static func escaped(_ bytes: some Collection<UInt8>) -> String {
        var shown = ""
        var parser = Unicode.UTF8.ForwardParser()
        var rest = bytes.makeIterator()
        var position = bytes.startIndex
        while true {
            switch parser.parseScalar(from: &rest) {
            case .valid(let encoded):
                append(Unicode.UTF8.decode(encoded), to: &shown)
                bytes.formIndex(&position, offsetBy: encoded.count)
            case .error(let length):
                for _ in 0..<length {
                    let byte = bytes[position]
                    shown += byte < 16 ? "\\x0" : "\\x"
                    shown += String(byte, radix: 16)
                    bytes.formIndex(after: &position)
                }
            case .emptyInput:
                return shown
            }
        }
    }

    private static func append(_ scalar: Unicode.Scalar, to shown: inout String) {
        if scalar == "\\" {
            shown += "\\\\"
        } else if isInvisible(scalar) {
            shown += "\\u{\(String(scalar.value, radix: 16))}"
        } else {
            shown.unicodeScalars.append(scalar)
        }
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        // Zero-width non-joiner and joiner: Persian and composed emoji are written with them.
        if scalar.value == 0x200C || scalar.value == 0x200D { return false }
        let category = scalar.properties.generalCategory
        return category == .control || category == .format || category == .lineSeparator
            || category == .paragraphSeparator || category == .unassigned
    }
}
