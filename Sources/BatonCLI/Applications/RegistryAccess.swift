// SPDX-License-Identifier: Apache-2.0

import BatonApplications
import BatonTransport
import FoundationEssentials
import SystemPackage

/// The registry and the launcher of applications for this environment.
enum RegistryAccess {
    static func registry() throws(CommandError) -> ApplicationRegistry {
        ApplicationRegistry(
            configurationFolder: FilePath(try CommandEnvironment.home().configurationFolder),
            desktopEntries: DesktopEntryFolders(environment: ProcessInfo.processInfo.environment))
    }

    static func launcher() -> ApplicationLauncher {
        ApplicationLauncher(environment: ProcessInfo.processInfo.environment)
    }

    static func failure(_ error: ApplicationRegistryError) -> CommandError {
        .failed(SafeText.escaped(error.description))
    }
}
