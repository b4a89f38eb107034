// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `baton applications`
struct ApplicationsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "applications",
        abstract: "List and register the applications that continue activities here.",
        discussion: """
            An activity that you accept goes to an application of this device that declares the activity's type and is \
            of the same team. The application is started if it does not run. It declares its types in its desktop \
            entry, or in an Info.plist that you register.

            In a desktop entry (~/.local/share/applications, /usr/share/applications and the like):

              X-Baton-Types=org.example.editing;org.example.viewing;
              X-Baton-Team=TEAM
              X-Baton-Identifier=ID       the entry's own name by default
              X-Baton-Documents=org.example.editing:txt,md;
              X-Baton-Versions=org.example.editing:1-3;
              X-Baton-Domains=example.org;*.example.org;

            A web page opens in an application that claims the page's host, if the host lists the application in its \
            apple-app-site-association. If several applications do, the one in front or the one used last opens it; \
            else you are asked.

            A registered application replaces a desktop entry with the same identifier. The node sees a change at once.

            EXAMPLES:
              baton applications                                    # list them
              baton applications register Info.plist --command shopsnap
              baton applications remove org.example.shopsnap
            """,
        subcommands: [
            ApplicationsListCommand.self, ApplicationsRegisterCommand.self, ApplicationsRemoveCommand.self,
        ],
        defaultSubcommand: ApplicationsListCommand.self)
}
