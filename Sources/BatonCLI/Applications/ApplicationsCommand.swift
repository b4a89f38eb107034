// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `baton applications`
struct ApplicationsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "applications",
        abstract: "Say which applications here continue activities, and how they are started.",
        discussion: """
            When you accept an activity, it goes to an application of this device that declares the activity's type and \
            is of the same team; one that does not run is started. An application says so itself in its desktop entry, \
            or you register the Info.plist that it has anyway.

            In a desktop entry (~/.local/share/applications, /usr/share/applications and the like):

              X-Baton-Types=org.example.editing;org.example.viewing;
              X-Baton-Team=TEAM
              X-Baton-Identifier=ID       else the entry's own name
              X-Baton-Documents=org.example.editing:txt,md;
              X-Baton-Versions=org.example.editing:1-3;
              X-Baton-Domains=example.org;*.example.org;

            A web page opens in the application that claims its host and that the host lists in its \
            apple-app-site-association; where several do, and none is in front or was used before, you are asked.

            What is registered goes before a desktop entry with the same identifier. The node sees a change at once.

            EXAMPLES:
              baton applications                                    # what there is
              baton applications register Info.plist --command shopsnap
              baton applications remove org.example.shopsnap
            """,
        subcommands: [
            ApplicationsListCommand.self, ApplicationsRegisterCommand.self, ApplicationsRemoveCommand.self,
        ],
        defaultSubcommand: ApplicationsListCommand.self)
}
