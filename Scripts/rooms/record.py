# SPDX-License-Identifier: Apache-2.0

"""What the event stream of a test process says (swift-testing, `--event-stream-output-path`)."""

import dataclasses
import json


@dataclasses.dataclass
class Record:
    """The tests of one process."""

    # Seconds of each test function.
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    # The tests that did not run, by reason.
    skipped: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    # The issues of the tests, in order.
    issues: list[str] = dataclasses.field(default_factory=list)


def short(test: str) -> str:
    """`Suite/name()` of an id, which ends with a place in the source."""
    parts = test.split(".", 1)[-1].split("/")
    return "/".join(part for part in parts if ".swift:" not in part)


def read(path: str) -> Record:
    """Reads a stream. A process that was killed leaves a part of a line, which is ignored."""
    record = Record()
    kinds: dict[str, str] = {}
    began: dict[str, float] = {}
    try:
        lines = open(path, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return record
    with lines:
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            payload = entry["payload"]
            if entry["kind"] == "test":
                kinds[payload["id"]] = payload["kind"]
                continue
            test = payload.get("testID", "")
            texts = [message["text"] for message in payload.get("messages", [])]
            match payload["kind"]:
                case "testStarted":
                    began[test] = payload["instant"]["absolute"]
                case "testEnded" if kinds.get(test) == "function" and test in began:
                    record.seconds[test] = payload["instant"]["absolute"] - began[test]
                case "testSkipped" if kinds.get(test) == "function":
                    reason = texts[0].partition('skipped: "')[2].removesuffix('"') if texts else ""
                    record.skipped.setdefault(reason or "it is disabled", []).append(short(test))
                case "issueRecorded":
                    record.issues.append(f"{short(test)}: {' '.join(texts)}")
    return record
