// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// A package of its own, because the simulator needs two rooms of the package above and none of its dependencies: it
// builds in seconds. Scripts/simulate builds and runs it.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "Simulator",
    targets: [
        .target(name: "BatonProtocol", path: "Sources/BatonProtocol", swiftSettings: settings),
        .target(
            name: "BatonCore", dependencies: ["BatonProtocol"], path: "Sources/BatonCore", swiftSettings: settings),
        .target(
            name: "BatonSimulation", dependencies: ["BatonCore", "BatonProtocol"], path: "BatonSimulation",
            exclude: ["Bugs"], swiftSettings: settings),
        .executableTarget(
            name: "simulate", dependencies: ["BatonSimulation"], path: "Command", swiftSettings: settings),
    ]
)
