// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The option `--json`, for commands that list something or take long.
struct JSONOption: ParsableArguments {
    @Flag(name: .long, help: "Print JSON, one object on each line.")
    var json = false
}
