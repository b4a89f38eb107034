// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// Without visible imports of members. If Foundation is among the imports, the compiler takes now one and now another
/// module for the owner of `struct stat`: that depends on how it puts a target's files into batches.
let settingsForStatus: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]
let settings = settingsForStatus + [.enableUpcomingFeature("MemberImportVisibility")]

/// A library target with the settings that every target of this package shares.
func room(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

/// The test target of a room.
func tests(
    of name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = [],
    settings: [SwiftSetting] = settings
) -> Target {
    .testTarget(
        name: name + "Tests", dependencies: [.byName(name: name), "BatonTestSupport"] + dependencies,
        exclude: exclude, swiftSettings: settings)
}

let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let subprocess: Target.Dependency = .product(name: "Subprocess", package: "swift-subprocess")

/// A sample application, with its manifest beside its source.
func sample(_ name: String) -> Target {
    .executableTarget(
        name: name, dependencies: ["Baton", "TerminalScreen", logging], path: "Sources/Examples/" + name,
        exclude: ["Info.plist"], swiftSettings: settings)
}

/// The plugin that makes the documentation. Programs that use the library do not fetch it: Scripts/docs asks for it.
let documentation: [Package.Dependency] =
    Context.environment["BATON_DOCS"] == nil
    ? [] : [.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0")]

/// What `baton --version` says. Scripts/package sets it; a build without it says "development".
let release: [CSetting] =
    Context.environment["BATON_RELEASE"].map { [.define("BATON_RELEASE", to: "\"\($0)\"")] } ?? []

let package = Package(
    name: "Baton",
    products: [
        .executable(name: "baton", targets: ["BatonCLI"]),
        .library(name: "Baton", targets: ["Baton"]),
        .library(name: "BatonFoundation", targets: ["BatonFoundation"]),
        .executable(name: "shopsnap", targets: ["ShopSnap"]),
        .executable(name: "monkeybrowser", targets: ["MonkeyBrowser"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2"),
    ] + documentation,
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CDNSSD", providers: [.apt(["libavahi-compat-libdnssd-dev"])]),
        .systemLibrary(name: "CXXHash", pkgConfig: "libxxhash", providers: [.apt(["libxxhash-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CLinux"),
        .target(name: "CVersion", cSettings: release),
        // Without pkgConfig, which would link it: see its shim.
        .systemLibrary(name: "CCURL", providers: [.apt(["libcurl4-openssl-dev"])]),
        // As above.
        .systemLibrary(name: "CQRencode", providers: [.apt(["libqrencode-dev"])]),

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
        room("BatonFoundation", ["Baton"]),
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
            name: "BatonCLI",
            dependencies: [
                "BatonNode", "Baton", "BatonApplications", "BatonCore", "BatonDiscovery", "BatonDocuments",
                "BatonAccount", "BatonMessages", "BatonTransport", "BatonProtocol", "BatonWeb", "BatonEventLoop",
                "CLinux", "CQRencode", "CVersion", logging, protobuf, subprocess, system,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            resources: [.embedInCode("Service/baton.service")], swiftSettings: settings),

        // The sample applications know of Baton what any application does.
        .target(
            name: "TerminalScreen", dependencies: ["Baton"], path: "Sources/Examples/TerminalScreen",
            swiftSettings: settings),
        sample("ShopSnap"),
        sample("MonkeyBrowser"),

        .systemLibrary(name: "CSpawn", path: "Tests/CSpawn"),
        .target(
            name: "BatonTestSupport",
            dependencies: [
                "Baton", "BatonProtocol", "BatonEventLoop", "BatonAccount", "BatonDocuments", "BatonMessages",
                "BatonTransport", "CSpawn", protobuf, subprocess, system,
            ],
            path: "Tests/BatonTestSupport", exclude: ["service-manager.sh"], swiftSettings: settings),
        .executableTarget(
            name: "discovery-probe", dependencies: ["BatonDiscovery", "BatonEventLoop"],
            path: "Tests/BatonDiscoveryProbe", swiftSettings: settings),
        .executableTarget(
            name: "document-probe", dependencies: ["Baton"], path: "Tests/BatonDocumentProbe",
            swiftSettings: settings),
        .executableTarget(
            name: "library-probe",
            dependencies: ["Baton", "BatonFoundation", "BatonMessages", "BatonTestSupport", "BatonTransport", logging],
            path: "Tests/BatonLibraryProbe", swiftSettings: settings),
        .executableTarget(
            name: "node-probe",
            dependencies: [
                "BatonAccount", "BatonDiscovery", "BatonDocuments", "BatonNode", "BatonTransport", "BatonWeb", logging,
            ],
            path: "Tests/BatonNodeProbe", swiftSettings: settings),
        // The simulated world. Scripts/simulate builds it in Tests/Simulator, a package of its own.
        .target(
            name: "BatonSimulation", dependencies: ["BatonCore", "BatonProtocol"], path: "Tests/BatonSimulation",
            exclude: ["Bugs"], swiftSettings: settings),
        tests(of: "BatonSimulation"),
        tests(of: "BatonProtocol"),
        tests(of: "BatonCore", ["BatonProtocol"]),
        tests(of: "BatonEventLoop", ["CSpawn", system]),
        tests(of: "BatonTLS", ["BatonProtocol", "COpenSSL"]),
        tests(of: "BatonAccount", ["BatonProtocol", "BatonTLS", "CLinux", system]),
        tests(of: "BatonDiscovery", ["BatonEventLoop", "discovery-probe"]),
        tests(of: "BatonDocuments", settings: settingsForStatus),
        tests(of: "BatonApplications", [system]),
        tests(
            of: "BatonWeb", ["BatonApplications", "BatonEventLoop", "BatonTLS", logging], exclude: ["Support/server.py"]
        ),
        tests(of: "BatonTransport", ["BatonProtocol", "BatonEventLoop"]),
        tests(of: "BatonMessages", ["BatonTransport", "BatonProtocol", "BatonEventLoop", protobuf]),
        tests(
            of: "Baton",
            ["BatonEventLoop", "BatonMessages", "BatonProtocol", "BatonTransport", logging, protobuf, system]),
        tests(
            of: "BatonFoundation",
            ["Baton", "BatonEventLoop", "BatonMessages", "BatonProtocol", "BatonTransport", protobuf]),
        tests(
            of: "BatonNode",
            [
                "BatonAccount", "BatonApplications", "BatonCore", "BatonDocuments", "BatonEventLoop",
                "BatonMessages", "BatonProtocol", "BatonTLS", "BatonTransport", "BatonWeb", "document-probe",
                "library-probe", logging, protobuf, system,
            ],
            exclude: ["Support/memory-places.py", "Support/memory-search.py", "Support/without-calls.py"]),
        // The attacks reach into every room.
        .testTarget(
            name: "BatonAttackTests",
            dependencies: [
                "Baton", "BatonAccount", "BatonCLI", "BatonCore", "BatonDiscovery", "BatonDocuments", "BatonEventLoop",
                "BatonMessages", "BatonNode", "BatonProtocol", "BatonTLS", "BatonTestSupport", "BatonTransport",
                "COpenSSL", "node-probe",
                crypto, logging, protobuf, system,
            ],
            swiftSettings: settingsForStatus),
        .testTarget(
            name: "ExamplesTests",
            dependencies: [
                "BatonCLI", "BatonMessages", "BatonTestSupport", "Baton", "MonkeyBrowser", "ShopSnap", "TerminalScreen",
                protobuf,
            ],
            swiftSettings: settings),
        .testTarget(name: "ScriptsTests", dependencies: [subprocess], swiftSettings: settings),
        tests(
            of: "BatonCLI",
            [
                "Baton", "BatonAccount", "BatonApplications", "BatonCore", "BatonDiscovery", "BatonEventLoop",
                "BatonMessages", "BatonNode", "BatonProtocol", "BatonTransport", logging, protobuf, subprocess, system,
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
    ]
)
