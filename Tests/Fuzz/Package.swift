// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// A package of its own, because its unsafe flags would keep the package above from being anybody's dependency. It
// compiles the rooms anew (Sources is a link) with libFuzzer's instrumentation, optimised but with assertions on, and
// with internal declarations visible. Scripts/fuzz builds and runs it.

let language: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A room of the package above, as its manifest declares it.
func room(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(
        name: name, dependencies: dependencies, path: "Sources/" + name, exclude: exclude,
        swiftSettings: language + [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing", "-assert-config", "Debug"])])
}

let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let subprocess: Target.Dependency = .product(name: "Subprocess", package: "swift-subprocess")

let package = Package(
    name: "BatonFuzz",
    dependencies: [
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    ],
    targets: [
        .systemLibrary(name: "COpenSSL", path: "Sources/COpenSSL", pkgConfig: "openssl"),
        .systemLibrary(name: "CDNSSD", path: "Sources/CDNSSD"),
        .systemLibrary(name: "CXXHash", path: "Sources/CXXHash", pkgConfig: "libxxhash"),
        .systemLibrary(name: "CZstd", path: "Sources/CZstd", pkgConfig: "libzstd"),
        .systemLibrary(name: "CLinux", path: "Sources/CLinux"),
        .systemLibrary(name: "CCURL", path: "Sources/CCURL"),

        room("BatonProtocol"),
        room("BatonCore", ["BatonProtocol"]),
        room("BatonEventLoop", ["CLinux", system]),
        room("BatonTLS", ["BatonProtocol", "CLinux", "COpenSSL"]),
        room(
            "BatonAccount",
            [
                "BatonProtocol", "BatonTLS", "BatonEventLoop", "CLinux", crypto, system,
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
            ]),
        room("BatonDiscovery", ["BatonCore", "BatonProtocol", "BatonEventLoop", "CDNSSD"]),
        room("BatonTransport", ["BatonProtocol", "BatonEventLoop", collections, system]),
        room("BatonMessages", ["BatonProtocol", "BatonTransport", protobuf], exclude: ["baton.proto"]),
        room(
            "Baton", ["BatonTransport", "BatonMessages", "BatonProtocol", "BatonEventLoop", logging, protobuf, system]),
        room("BatonWeb", ["BatonApplications", "BatonTLS", "BatonEventLoop", "CCURL", logging]),
        room("BatonDocuments", ["BatonProtocol", "BatonEventLoop", "CXXHash", "CZstd", "CLinux", crypto, system]),
        room("BatonApplications", ["BatonEventLoop", crypto, subprocess, system]),
        room(
            "BatonNode",
            [
                "BatonCore", "BatonTransport", "BatonTLS", "BatonDiscovery", "BatonDocuments", "BatonAccount",
                "BatonMessages", "BatonProtocol", "BatonEventLoop", "BatonApplications", "BatonWeb", logging,
                protobuf, system,
            ]),

        .executableTarget(
            name: "BatonFuzz",
            dependencies: [
                "BatonNode", "BatonCore", "Baton", "BatonWeb", "BatonDocuments", "BatonDiscovery", "BatonAccount",
                "BatonMessages", "BatonTLS", "BatonProtocol", "BatonEventLoop", "BatonApplications", "COpenSSL",
                logging, protobuf, system,
            ],
            path: "Targets",
            swiftSettings: language + [
                .unsafeFlags(["-sanitize=fuzzer", "-parse-as-library", "-assert-config", "Debug"])
            ],
            // gold, the default linker here, fails on what -sanitize=fuzzer adds.
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]),
    ]
)
