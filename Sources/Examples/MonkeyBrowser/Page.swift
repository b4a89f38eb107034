// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A page of the small web that this browser knows. It shows how pages are handed over, and loads none.
struct Page: Hashable {
    struct Link: Hashable {
        let name: String
        let url: URL
    }

    let url: URL
    let title: String
    let text: [String]
    let links: [Link]

    /// The page at an address, or a page that says that there is none.
    init(_ url: URL) {
        self.url = url
        let path = url.path()
        let host = url.host() ?? ""
        func link(_ name: String, _ path: String) -> Link {
            Link(name: name, url: URL(string: "https://\(host)\(path)")!)
        }
        switch (host, path) {
        case ("weather.example.org", "/"):
            title = "Weather: today"
            text = (0...23).map { "\($0 < 10 ? "0" : "")\($0):00   \(14 + $0 % 9) °C   wind \(3 + $0 % 5) m/s" }
            links = [link("Tomorrow", "/tomorrow"), link("The week", "/week")]
        case ("weather.example.org", "/tomorrow"):
            title = "Weather: tomorrow"
            text = (0...23).map { "\($0 < 10 ? "0" : "")\($0):00   \(11 + $0 % 7) °C   rain \($0 * 4 % 90) %" }
            links = [link("Today", "/"), link("The week", "/week")]
        case ("weather.example.org", "/week"):
            title = "Weather: the week"
            text = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"].map { $0 + ": fair" }
            links = [link("Today", "/")]
        case ("monkeys.example.org", "/"):
            title = "Monkeys of the world"
            text = (1...40).map { "\($0). A monkey that you have not heard of" }
            links = [link("The one in the picture", "/picture")]
        case ("monkeys.example.org", "/picture"):
            title = "The picture"
            text = ["   ,--,   ", "  ( oo )  ", "   \\__/   "]
            links = [link("All monkeys", "/")]
        case ("coffee.example.org", "/"):
            title = "A coffee a day"
            text = (1...60).map { "Chapter \($0): the cup is \($0 % 2 == 0 ? "empty" : "full") again" }
            links = [link("Beans", "/beans")]
        case ("coffee.example.org", "/beans"):
            title = "Beans"
            text = ["Arabica", "Robusta", "Liberica", "Excelsa"]
            links = [link("The story", "/")]
        case ("work.example.org", "/"):
            title = "Tickets"
            text = (1...50).map { "#\(100 + $0)  open  reported \($0) days ago" }
            links = [link("The oldest", "/oldest")]
        case ("work.example.org", "/oldest"):
            title = "#150"
            text = ["Open for 50 days.", "Nobody knows why."]
            links = [link("All tickets", "/")]
        default:
            title = "Nothing at \(url.absoluteString)"
            text = ["This browser knows the pages of its four tabs."]
            links = []
        }
    }
}
