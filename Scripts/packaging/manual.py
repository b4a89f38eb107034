# SPDX-License-Identifier: Apache-2.0

"""Makes manual pages of what `baton --experimental-dump-help` prints: one page for each command.

usage: baton --experimental-dump-help | python3 manual.py FOLDER VERSION DATE

swift-argument-parser has a generator of its own, `generate-manual`. It is not used, because it puts the lines of
examples and tables together into paragraphs, and adds an exit status that is not true.
"""

import json
import pathlib
import re
import sys

HEADING = re.compile(r"([A-Z][A-Z ]+):")
# A line of a table: a word, at least two spaces, and its meaning.
ROW = re.compile(r"\s*(\S+)\s{2,}(\S.*)")


def escaped(text: str) -> str:
    """Text in which no character means something to troff, also at the beginning of a line."""
    special = {"\\": r"\e", "-": r"\-", "^": r"\(ha", "~": r"\(ti", "`": r"\(ga", "'": r"\(aq", '"': r"\(dq"}
    return "".join(special.get(character, character) for character in text).replace("\n.", "\n\\&.")


def line(text: str) -> str:
    """One line of prose, with `code` in bold."""
    parts = re.split(r"`([^`]*)`", text.strip())
    shown = "".join(rf"\fB{escaped(part)}\fR" if index % 2 else escaped(part) for index, part in enumerate(parts))
    return r"\&" + shown if shown.startswith(".") else shown


class Page:
    """The manual page of one command."""

    def __init__(self, command: dict, relatives: list[str], version: str, date: str):
        self.command = command
        self.words = [*command.get("superCommands", []), command["commandName"]]
        self.name = "-".join(self.words)
        self.relatives = relatives
        # Flush left and without hyphens, so that names and options stay whole.
        self.lines = [
            f'.TH {escaped(self.name.upper())} 1 "{date}" "Baton {escaped(version)}" "User Commands"', ".nh", ".ad l",
        ]

    def text(self) -> str:
        arguments = [each for each in self.command.get("arguments", []) if self.is_shown(each)]
        self.lines += [".SH NAME", rf"{escaped(self.name)} \- {line(self.command.get('abstract', '')).rstrip('.')}"]
        self.synopsis(arguments)
        sections = self.sections(self.command.get("discussion", ""))
        self.lines.append(".SH DESCRIPTION")
        self.blocks([[self.command.get("abstract", "")], *sections.pop("DESCRIPTION", [])])
        self.subcommands()
        self.options([each for each in arguments if each["kind"] == "positional"], "ARGUMENTS")
        self.options([each for each in arguments if each["kind"] != "positional"], "OPTIONS")
        for heading, blocks in sections.items():
            self.lines.append(f".SH {heading}")
            self.blocks(blocks)
        if self.relatives:
            self.lines.append(".SH SEE ALSO")
            self.lines += [rf".BR {escaped(each)} (1){',' * (each != self.relatives[-1])}" for each in self.relatives]
        return "\n".join(self.lines) + "\n"

    def is_shown(self, argument: dict) -> bool:
        """Whether an argument is public. Every command takes `--version`, and only the page of `baton` says so."""
        return argument["shouldDisplay"] and (len(self.words) == 1 or argument["valueName"] != "version")

    def synopsis(self, arguments: list[dict]) -> None:
        self.lines += [".SH SYNOPSIS", rf".B {escaped(' '.join(self.words))}"]
        if self.shown_subcommands():
            self.lines.append(r".I COMMAND")
        for each in arguments:
            if each["kind"] == "positional":
                shown = rf"\fI{escaped(each['valueName'])}\fR"
            else:
                shown = self.spelled(each, each["preferredName"])
            shown = shown if each["kind"] == "positional" and not each["isOptional"] else f"[{shown}]"
            self.lines.append(shown + (r"\&..." if each["isRepeating"] else ""))

    def shown_subcommands(self) -> list[dict]:
        return [each for each in self.command.get("subcommands", []) if each["shouldDisplay"]]

    def subcommands(self) -> None:
        if not self.shown_subcommands():
            return
        self.lines.append(".SH COMMANDS")
        default = self.command.get("defaultSubcommand")
        for each in self.shown_subcommands():
            mark = " This is the default." if each["commandName"] == default else ""
            self.lines += [".TP", rf".B {escaped(each['commandName'])}", line(each.get("abstract", "") + mark)]

    def options(self, arguments: list[dict], heading: str) -> None:
        if not arguments:
            return
        self.lines.append(f".SH {heading}")
        for each in arguments:
            if each["kind"] == "positional":
                term = rf"\fI{escaped(each['valueName'])}\fR"
            else:
                # The short names first.
                names = sorted(each["names"], key=lambda name: name["kind"] == "long")
                term = ", ".join(self.spelled(each, name) for name in names)
            meaning = each.get("abstract", "")
            if (default := each.get("defaultValue")) and default not in meaning:
                meaning += f" (default: {default})"
            self.lines += [".TP", term, line(meaning) or r"\&"]
            if discussion := each.get("discussion"):
                self.lines += [".RS", *self.paragraphs(discussion), ".RE"]

    @staticmethod
    def spelled(argument: dict, name: dict) -> str:
        dashes = "--" if name["kind"] == "long" else "-"
        option = rf"\fB{escaped(dashes + name['name'])}\fR"
        return option + (rf" \fI{escaped(argument['valueName'])}\fR" if argument["kind"] == "option" else "")

    @staticmethod
    def sections(discussion: str) -> dict[str, list[list[str]]]:
        """The blocks of a discussion, which empty lines divide, below their headings."""
        sections: dict[str, list[list[str]]] = {"DESCRIPTION": []}
        heading = "DESCRIPTION"
        for block in re.split(r"\n\s*\n", discussion.strip("\n")):
            lines = block.split("\n")
            if match := HEADING.fullmatch(lines[0].strip()):
                heading = match[1]
                lines = lines[1:]
            if any(each.strip() for each in lines):
                sections.setdefault(heading, []).append(lines)
        return sections

    def blocks(self, blocks: list[list[str]]) -> None:
        """The blocks of a section. One line is a paragraph, and several lines stay as they are."""
        for index, lines in enumerate(blocks):
            if index:
                self.lines.append(".PP")
            rows = [ROW.fullmatch(each) for each in lines]
            if len(lines) == 1 and not lines[0].startswith(" "):
                self.lines.append(line(lines[0]))
            elif all(rows) and all(row[1].isdigit() for row in rows):
                for row in rows:
                    self.lines += [".TP 6", rf".B {row[1]}", line(row[2])]
            else:
                indent = min(len(each) - len(each.lstrip()) for each in lines if each.strip())
                shown = (escaped(each[indent:]) for each in lines)
                self.lines += [".nf", *(r"\&" + each if each.startswith(".") else each for each in shown), ".fi"]

    @staticmethod
    def paragraphs(text: str) -> list[str]:
        return [each for part in text.split("\n\n") for each in (".PP", line(part.replace("\n", " ")))]


def pages(command: dict, parents: list[str]) -> list[tuple[dict, list[str]]]:
    """A command and all commands beneath it, each with the names of its parents. `help` needs no page."""
    shown = [each for each in command.get("subcommands", []) if each["shouldDisplay"] and each["commandName"] != "help"]
    own = [*parents, command["commandName"]]
    command = command | {"superCommands": parents, "subcommands": shown}
    return [(command, own)] + [page for each in shown for page in pages(each, own)]


def main() -> None:
    folder, version, date = sys.argv[1:]
    every = pages(json.load(sys.stdin)["command"], [])
    for command, words in every:
        parent = ["-".join(words[:-1])] if len(words) > 1 else []
        children = ["-".join([*words, each["commandName"]]) for each in command["subcommands"]]
        page = Page(command, parent + children, version, date)
        pathlib.Path(folder, page.name + ".1").write_text(page.text(), encoding="utf-8")


main()
