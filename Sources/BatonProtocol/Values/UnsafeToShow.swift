// SPDX-License-Identifier: Apache-2.0

extension Unicode.Scalar {
    /// Whether a terminal might act on the character or hide it.
    ///
    /// These are controls, bidirectional and other format characters, line and paragraph separators, blank and
    /// invisible characters (Unicode's Default_Ignorable_Code_Point), and characters without a meaning. Names and
    /// sentences of peers, and JSON with text of peers, are shown without them (Unicode Technical Report 36, section 3,
    /// and CVE-2021-42574).
    package var isUnsafeToShow: Bool {
        switch value {
        // Joiners and the selectors of text and emoji belong to the spelling of several scripts and to emoji. They move
        // nothing.
        case 0x200C, 0x200D, 0xFE0E, 0xFE0F: return false
        // Blank Braille.
        case 0x2800: return true
        case _: break
        }
        return switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        case _: properties.isDefaultIgnorableCodePoint
        }
    }
}
