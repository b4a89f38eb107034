// SPDX-License-Identifier: Apache-2.0

/// One parser, or one state machine, that a peer or a stranger can feed.
protocol FuzzTarget: SendableMetatype {
    /// The name in Scripts/fuzz, and of the folder of inputs.
    static var name: String { get }

    /// The most bytes of an input.
    static var maximumLength: Int { get }

    /// Inputs to begin with, from real encodings.
    static func seeds() throws -> [[UInt8]]

    /// Takes one input. A trap, an error, too much memory or too much time is a finding.
    static func run(_ bytes: UnsafeRawBufferPointer) throws
}

/// The properties of every input; if one does not hold, the engine keeps the input as a finding.
func expect(
    _ condition: Bool, _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) {
    guard condition else { fatalError(what(), file: file, line: line) }
}

/// Why the program cannot do what it was asked to.
struct FuzzError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
