# SPDX-License-Identifier: Apache-2.0

"""Runs the tests of a build in several processes at once, and reports what became of them. Scripts/check calls it."""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)

import jobs as work  # noqa: E402
import record  # noqa: E402

scripts = os.path.dirname(here)
# Ends a process with all that it has started.
WITHIN = 'source "$1/common/build.bash"; shift; attend_within "$@"'


class Run:
    """The processes that run, and what has become of the others."""

    def __init__(self, given: argparse.Namespace):
        self.given = given
        self.running: dict[int, tuple[work.Job, float, str, subprocess.Popen]] = {}
        self.records: dict[str, record.Record] = {}
        # Of each room: seconds of all its processes, and seconds of processor time.
        self.times: dict[str, list[float]] = collections.defaultdict(lambda: [0.0, 0.0])
        self.notes: list[str] = []
        self.unrun: dict[str, list[str]] = collections.defaultdict(list)
        self.attacks = [0, 0, 0, 0]
        self.failed = False

    def path(self, job: work.Job, kind: str) -> str:
        return os.path.join(self.given.logs, job.name.replace("/", ".").replace(" ", "-") + kind)

    def start(self, job: work.Job) -> None:
        # A short path: sockets lie beneath it.
        place = os.path.join(self.given.left, str(len(self.records) + len(self.running)))
        os.mkdir(place)
        # Tests run commands as other users.
        os.chmod(place, 0o1777)
        command = job.arguments
        if job.is_tests:
            events = self.path(job, ".jsonl")
            if os.path.exists(events):
                os.remove(events)
            command = [
                self.given.program, "--testing-library", "swift-testing", "--no-parallel", *job.arguments,
                "--event-stream-output-path", events, "--event-stream-version", "0"]
        if job.waits and os.geteuid() != 0:
            command = [os.path.join(scripts, "lab"), "enter", *command]
        # The campaign's documents are large: they stay where the machine has its disk.
        own = {"TMPDIR": place} if job.is_tests else {}
        with open(self.path(job, ".log"), "wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", WITHIN, "bash", scripts, str(self.given.seconds), *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=os.environ | own)
        self.running[process.pid] = (job, time.monotonic(), place, process)

    def next(self, waiting: list[work.Job], computing: list[work.Job]) -> work.Job | None:
        """The next job that there is room for, if any.

        As many processes compute as there are processors, and twice as many that wait run beside them. When fewer
        compute, two more that wait take the place of each.
        """
        processors = os.cpu_count() or 1
        active = sum(1 for job, *_ in self.running.values() if not job.waits)
        passive = len(self.running) - active
        if computing and active < processors + (not waiting):
            return computing.pop(0)
        if waiting and passive < processors * 2 + 2 * (processors - min(active, processors)):
            return waiting.pop(0)
        return None

    def run(self, all_jobs: list[work.Job]) -> None:
        waiting = [job for job in all_jobs if job.waits]
        computing = [job for job in all_jobs if not job.waits]
        while True:
            while job := self.next(waiting, computing):
                self.start(job)
            if not self.running:
                return
            number, status, usage = os.wait3(0)
            if number in self.running:
                job, began, place, process = self.running.pop(number)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.end(job, process.returncode, time.monotonic() - began, usage, place)

    def end(self, job: work.Job, status: int, seconds: float, usage, place: str) -> None:
        processor = usage.ru_utime + usage.ru_stime
        entry = record.read(self.path(job, ".jsonl")) if job.is_tests else record.Record()
        self.records[job.name] = entry
        self.times[work.room(job.name)][0] += seconds
        self.times[work.room(job.name)][1] += processor
        for reason, tests in entry.skipped.items():
            self.unrun[reason] += tests
        problems = [" ".join(issue.split())[:400] for issue in entry.issues]
        if status == 124:
            problems.append(f"ended after {self.given.seconds} s: a test hangs")
        if job.is_tests and not entry.seconds and not entry.skipped:
            problems.append("no test ran")
        if status != 0 and not problems:
            problems.append(f"it ended with {status}")
        left = os.listdir(place)
        if left:
            self.notes.append(f"{job.name}: LEFT BEHIND: {' '.join(sorted(left))}")
        subprocess.run(["find", place, "-xdev", "-delete"], check=False, stderr=subprocess.DEVNULL)
        state = "FAILED" if problems else "ok"
        count = f"{len(entry.seconds)} tests" if job.is_tests else ""
        print(f"  {state:7} {job.name:62} {count:>10} {seconds:7.1f} s {processor:7.1f} s", flush=True)
        self.read_log(job)
        if problems:
            self.failed = True
            for problem in problems[:10]:
                self.notes.append(f"FAILED {job.name}: {problem[:240]}")
                print(f"          {problem}")
            print(f"          Its output: {self.path(job, '.log')}", flush=True)

    def read_log(self, job: work.Job) -> None:
        """What is said in the output alone: the count of the attacks, and the outcome of the campaign."""
        with open(self.path(job, ".log"), encoding="utf-8", errors="replace") as log:
            for line in log:
                if counts := re.match(r"attacks: (\d+) tried, (\d+) refused, (\d+) without a limit, (\d+) ag", line):
                    self.attacks = [sum(pair) for pair in zip(self.attacks, map(int, counts.groups()))]
                elif re.search(r"^ *(seed \d+: |1 GiB, )| LOST: ", line) and not job.is_tests:
                    self.notes.append(f"{job.name}: {' '.join(line.split())}")

    def report(self) -> None:
        print(f"\n  {'suites':32} {'tests':>6} {'all processes':>15} {'processor':>11}")
        for room, (seconds, processor) in sorted(self.times.items(), key=lambda item: -item[1][0]):
            count = sum(len(entry.seconds) for name, entry in self.records.items() if work.room(name) == room)
            print(f"  {room:32} {count or '-':>6} {seconds:13.1f} s {processor:9.1f} s")
        times = [(seconds, test) for entry in self.records.values() for test, seconds in entry.seconds.items()]
        print("\n  The ten slowest tests:")
        for seconds, test in sorted(times, reverse=True)[:10]:
            print(f"  {seconds:7.1f} s  {test.split('.')[0]}.{record.short(test)}")
        if self.attacks[0]:
            tried, refused, unlimited, apart = self.attacks
            self.notes.append(
                f"attacks: {tried} tried, {refused} refused; {unlimited} succeed without their limit, {apart} against "
                "a stand-in")
        issues = sum(len(entry.issues) for entry in self.records.values())
        self.notes.append(f"{len(times)} tests, {issues} issues")


def main() -> int:
    parser = argparse.ArgumentParser(prog="rooms")
    parser.add_argument("--program", required=True, help="the program of the tests")
    parser.add_argument("--left", required=True, help="a folder for what the tests leave")
    parser.add_argument("--logs", required=True, help="a folder for what the tests print")
    parser.add_argument("--notes", required=True, help="a file for what the summary is to say")
    parser.add_argument("--seconds", type=int, default=600, help="of one process at most")
    parser.add_argument("--without-labs", action="store_true")
    parser.add_argument("--only", help="run the jobs whose names match")
    parser.add_argument("beside", nargs="*", help="a command that runs beside the tests")
    given = parser.parse_args()

    shutil.rmtree(given.logs, ignore_errors=True)
    os.makedirs(given.logs)
    run = Run(given)
    tests = work.listed(given.program)
    all_jobs = [] if given.without_labs else work.labs([test for test in tests if ".Lab" in test])
    all_jobs += work.others([test for test in tests if ".Lab" not in test])
    if given.beside:
        all_jobs.insert(0, work.Job(os.path.basename(given.beside[0]), given.beside, waits=True, is_tests=False))
    if given.only:
        all_jobs = [job for job in all_jobs if re.search(given.only, job.name)]
    print(f"  {'':7} {'process':62} {'':>10} {'time':>9} {'processor':>9}")
    run.run(all_jobs)
    run.report()
    with open(given.notes, "w", encoding="utf-8") as notes:
        notes.writelines(f"note\t{note}\n" for note in run.notes)
        notes.writelines(f"unrun\t{len(tests)} tests ({reason})\n" for reason, tests in sorted(run.unrun.items()))
    return int(run.failed)


if __name__ == "__main__":
    sys.exit(main())
