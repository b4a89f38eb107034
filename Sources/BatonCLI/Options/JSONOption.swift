// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `--json`, the same on every command that lists or takes long.
struct JSONOption: ParsableArguments {
    @Flag(name: .long, help: "Print one JSON object a line.")
    var json = false
}
