// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A library target with the settings that every target of this package shares.
func room(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

/// The test target of a room.
func tests(of name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: name + "Tests", dependencies: [.byName(name: name), "BatonTestSupport"] + dependencies,
        swiftSettings: settings)
}

let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let subprocess: Target.Dependency = .product(name: "Subprocess", package: "swift-subprocess")

let package = Package(
    name: "Baton",
    products: [
        .executable(name: "baton", targets: ["BatonCLI"]),
        .library(name: "Baton", targets: ["Baton"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
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
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CDNSSD", providers: [.apt(["libavahi-compat-libdnssd-dev"])]),
        .systemLibrary(name: "CXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
        .systemLibrary(name: "CLinux"),

        room("BatonProtocol", exclude: ["WireProtocol.md"]),
        room("BatonEventLoop", [system]),
        room("BatonTLS", ["COpenSSL"]),
        room(
            "BatonAccount",
            [
                "CLinux", crypto, system,
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
            ]),
        room("BatonDiscovery", ["BatonEventLoop", "CDNSSD"]),
        room("BatonTransport", ["BatonProtocol", "BatonEventLoop", collections, system]),
        room("BatonMessages", ["BatonProtocol", "BatonTransport", protobuf], exclude: ["baton.proto"]),
        room("Baton", ["BatonTransport", "BatonMessages", "BatonProtocol", "BatonEventLoop", protobuf]),
        room("BatonDocuments", ["BatonProtocol", "BatonEventLoop", "CXXHash", "CLinux", system]),
        room(
            "BatonNode",
            [
                "BatonTransport", "BatonTLS", "BatonDiscovery", "BatonDocuments", "BatonAccount", "BatonMessages",
                "BatonProtocol", "BatonEventLoop", logging, protobuf, system,
            ]),
        .executableTarget(
            name: "BatonCLI",
            dependencies: [
                "BatonNode", "Baton", "BatonDocuments", "BatonAccount", "BatonMessages", "BatonTransport",
                "BatonProtocol",
                "BatonEventLoop", logging, protobuf, subprocess, system,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),

        .target(
            name: "BatonTestSupport",
            dependencies: ["BatonProtocol", "BatonEventLoop", "BatonAccount", subprocess, system],
            path: "Tests/BatonTestSupport", swiftSettings: settings),
        .executableTarget(
            name: "discovery-probe", dependencies: ["BatonDiscovery", "BatonEventLoop"],
            path: "Tests/BatonDiscoveryProbe", swiftSettings: settings),
        .executableTarget(
            name: "node-probe",
            dependencies: ["BatonAccount", "BatonDiscovery", "BatonNode", "BatonTransport", logging],
            path: "Tests/BatonNodeProbe", swiftSettings: settings),
        tests(of: "BatonProtocol"),
        tests(of: "BatonEventLoop", [system]),
        tests(of: "BatonTLS", ["COpenSSL"]),
        tests(of: "BatonAccount", ["CLinux"]),
        tests(of: "BatonDiscovery", ["BatonEventLoop", "discovery-probe"]),
        tests(of: "BatonDocuments"),
        tests(of: "BatonTransport", ["BatonProtocol", "BatonEventLoop"]),
        tests(of: "BatonMessages", ["BatonTransport", "BatonProtocol", "BatonEventLoop", protobuf]),
        tests(
            of: "BatonNode",
            [
                "BatonAccount", "BatonEventLoop", "BatonProtocol", "BatonTLS", "BatonTransport", logging, protobuf,
                system,
            ]),
        // The attacks, each with its defence and without: they reach into every room.
        .testTarget(
            name: "BatonAttackTests",
            dependencies: [
                "BatonAccount", "BatonCLI", "BatonDiscovery", "BatonDocuments", "BatonEventLoop", "BatonMessages",
                "BatonNode", "BatonProtocol", "BatonTLS", "BatonTestSupport", "BatonTransport", "COpenSSL",
                "node-probe",
                crypto, logging, protobuf, system,
            ],
            swiftSettings: settings),
        tests(
            of: "BatonCLI",
            [
                "Baton", "BatonMessages", "BatonProtocol", "BatonTransport", "BatonEventLoop", protobuf, subprocess,
                system,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
    ]
)
