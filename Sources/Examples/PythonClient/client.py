# SPDX-License-Identifier: Apache-2.0

"""Takes part in handoffs from Python, by `baton application`.

Usage: client.py offer|continue|stumble BATON MANIFEST LOG

`offer` offers a note. It saves the note when a device takes it over, and sends back all bytes of the note's streams. When
a device could not continue the note, it offers an update.
`continue` continues notes. For each it opens a stream, sends bytes both ways, and compares them.
`stumble` does the same, but cannot handle the first note.

LOG gets the events of the bridge, one line each, and the messages that a user would see.
Sources/BatonCLI/BatonCLI.docc/ApplicationMessages.md describes every message.
"""

import base64
import collections
import hashlib
import json
import subprocess
import sys

WINDOW = 4  # unanswered messages of a stream
PIECE = 32 * 1024


class Stream:
    """One stream: its bytes wait here until the bridge has written those before them."""

    def __init__(self, application, name):
        self.application, self.name = application, name
        self.queue, self.unwritten, self.is_finishing = collections.deque(), 0, False

    def write(self, data):
        for start in range(0, len(data), PIECE):
            self.queue.append(data[start:start + PIECE])
        self.pump()

    def finish(self):
        self.is_finishing = True
        self.pump()

    def written(self):
        self.unwritten -= 1
        self.pump()

    def pump(self):
        while self.queue and self.unwritten < WINDOW:
            self.unwritten += 1
            self.application.do("write", stream=self.name, data=base64.b64encode(self.queue.popleft()).decode())
        if self.is_finishing and not self.queue:
            self.is_finishing = False
            self.application.do("finish", stream=self.name)


class Application:
    """The part that both roles share: the bridge as a child process, and its streams."""

    def __init__(self, baton, manifest, log):
        self.log = open(log, "a", buffering=1, encoding="utf-8")
        self.bridge = subprocess.Popen(
            [baton, "application", "--manifest", manifest], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.streams = {}

    def do(self, what, **members):
        self.bridge.stdin.write(json.dumps({"do": what, **members}).encode() + b"\n")
        self.bridge.stdin.flush()

    def run(self):
        for line in self.bridge.stdout:
            event = json.loads(line)
            if event["event"] not in ("data", "written"):
                self.log.write(line.decode())
            getattr(self, "on_" + event["event"], lambda event: None)(event)

    def on_streamOpened(self, event):
        self.streams[event["stream"]] = Stream(self, event["stream"])

    def on_data(self, event):
        self.do("ack", stream=event["stream"])
        self.received(self.streams[event["stream"]], base64.b64decode(event["data"]))

    def on_written(self, event):
        self.streams[event["stream"]].written()


class Offering(Application):
    failures = 0

    def on_ready(self, event):
        self.do("becomeCurrent", activity="note", type=event["types"][0], title="Python's note",
                userInfo={"page": 1}, version=1, supportsContinuationStreams=True)

    def on_willSave(self, event):
        self.do("saved", request=event["request"], userInfo={"page": 2 + self.failures, "from": ["python", None, 1.5]})

    def on_failed(self, event):
        self.failures += 1
        self.do("update", activity=event["activity"], title=f"Python's note, once more for {event.get('device')}",
                addUserInfoEntries={"failures": self.failures})

    def received(self, stream, data):
        stream.write(data)

    def on_end(self, event):
        self.streams[event["stream"]].finish()


class Continuing(Application):
    sent = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(40_000))

    def on_willContinue(self, event):
        self.do("willContinue", request=event["request"], showsProgress=True)

    def on_continue(self, event):
        self.do("continued", request=event["request"])
        if event["supportsContinuationStreams"]:
            self.came = hashlib.sha256()
            self.do("openStream", activity=event["activity"], stream="echo")

    def on_didFailToContinue(self, event):
        if event["code"] != 3072:  # the user cancelled
            self.log.write(json.dumps({"event": "shown", "message": event["message"]}) + "\n")

    def on_streamOpened(self, event):
        super().on_streamOpened(event)
        stream = self.streams[event["stream"]]
        stream.write(self.sent)
        stream.finish()

    def received(self, stream, data):
        self.came.update(data)

    def on_end(self, event):
        is_same = self.came.digest() == hashlib.sha256(self.sent).digest()
        self.log.write(json.dumps({"event": "echoed" if is_same else "corrupted"}) + "\n")


class Stumbling(Continuing):
    def on_continue(self, event):
        self.do("continued", request=event["request"], handled=False)
        self.on_continue = super().on_continue


role = {"offer": Offering, "continue": Continuing, "stumble": Stumbling}[sys.argv[1]]
role(*sys.argv[2:5]).run()
