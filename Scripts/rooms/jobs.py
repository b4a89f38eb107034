# SPDX-License-Identifier: Apache-2.0

"""The processes that the tests of a build are divided among."""

import collections
import dataclasses
import re
import subprocess

# The most tests of a lab suite that run one after the other. A long suite is divided, so that nothing waits for its
# end.
TESTS_OF_A_LAB_PROCESS = 3
# The most tests of another process, except that it runs whole suites. The program takes a third of a second to start.
TESTS_OF_A_PROCESS = 40


@dataclasses.dataclass
class Job:
    """One process."""

    name: str
    # Its command, or the arguments that choose its tests.
    arguments: list[str]
    # Whether it waits for most of its time: lab hosts do.
    waits: bool = False
    # Whether it runs tests.
    is_tests: bool = True


def room(name: str) -> str:
    """The test target of a job or a test."""
    return re.split(r"[. ]", name)[0]


def listed(program: str) -> list[str]:
    """The tests of the build, as `BatonNodeTests.LabFooTests/LabBarTests/name(argument:)`."""
    command = [program, "--testing-library", "swift-testing", "--list-tests"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if "." in line]


def labs(tests: list[str]) -> list[Job]:
    """Jobs for the suites on lab hosts."""
    suites: dict[str, list[str]] = collections.defaultdict(list)
    for test in tests:
        suite, _, name = test.rpartition("/")
        suites[suite].append(re.escape(name.split("(")[0]))
    jobs = []
    for suite, names in suites.items():
        for first in range(0, len(names), TESTS_OF_A_LAB_PROCESS):
            part = "|".join(names[first : first + TESTS_OF_A_LAB_PROCESS])
            number = f" {first // TESTS_OF_A_LAB_PROCESS + 1}" if len(names) > TESTS_OF_A_LAB_PROCESS else ""
            jobs.append(Job(suite + number, ["--filter", rf"^{re.escape(suite)}/({part})\("], waits=True))
    return jobs


def others(tests: list[str]) -> list[Job]:
    """Jobs for all other suites, those of the largest room first."""
    rooms: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for test in tests:
        rest = test.partition(".")[2]
        # A test outside of a suite counts as one.
        rooms[room(test)][rest.split("/")[0] + "/" if "/" in rest else rest.split("(")[0] + "("] += 1
    jobs = []
    for target, suites in sorted(rooms.items(), key=lambda item: -item[1].total()):
        parts: list[list[str]] = [[]]
        count = 0
        for suite, tests_of_it in suites.items():
            if parts[-1] and count + tests_of_it > TESTS_OF_A_PROCESS:
                parts.append([])
                count = 0
            parts[-1].append(re.escape(suite))
            count += tests_of_it
        for number, part in enumerate(parts, 1):
            name = f"{target} {number}" if len(parts) > 1 else target
            jobs.append(Job(name, ["--filter", rf"^{target}\.({'|'.join(part)})"]))
    return jobs
