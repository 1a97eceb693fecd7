"""Runs the tests in parts, all of them even where one fails, and ends with what failed and what took longest.

    python packaging/run_tests.py quick [--again]    # `make test`
    python packaging/run_tests.py more [--again]     # `make test-more`
    python packaging/run_tests.py random             # `make test-random`: property tests, new examples each time

A marker says which test belongs where (tests/conftest.py). With `--again` tests that failed run once more, alone, if
they are few: what passes only then is listed as flaky. With `--begin-within SECONDS` a part that would begin later is
left out, and named at the end. build/test-results/SUITE.tsv has what each directory and test took. The exit status is
1 where a test failed in its last run, or a part could not be run; after a signal it is 128 and the signal's number:
what runs is sent the signal, cleans up, and nothing else begins.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "test-results"
CARGO = os.environ.get("CARGO", "cargo")
IN_PROCESS = ["tests/unit", "tests/property", "tests/golden"]
SLOWEST = 10
FEW = 10
"""So many failures at most are run again: more have a common cause."""
PROGRAM_LIMIT_S = 1200
"""How long one program of the engine's tests may run: several at a time, hundreds of tests."""
FOREIGN = (
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONOPTIMIZE"),
    *("ETUDE_GOLDEN", "ETUDE_HYPOTHESIS"),
)
"""Of the environment, what would choose other tests than a suite has, or other verdicts; and all of PROPTEST_*."""


@dataclass(frozen=True)
class Part:
    """Tests that run together: of pytest with these arguments, or the engine's where there are none."""

    name: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    engine: list[str] = field(default_factory=list)
    """Names of the engine's tests; all of them where there are none."""


@dataclass
class Outcome:
    """Of one part."""

    name: str
    elapsed_s: float = 0.0
    passed: int = 0
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """Why tests were skipped, with how many of them."""
    failed: list[str] = field(default_factory=list)
    tests_s: dict[str, float] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    of_engine: bool = False
    passed_names: set[str] = field(default_factory=set)
    """Of the engine's tests, which have no times."""


def tests(name: str, marked: str, *options: str, **environment: str) -> Part:
    return Part(name, ["-m", marked, *options], environment)


def beside(processes: int) -> list[str]:
    """Computing takes a process a CPU; what starts programs and waits for them has room for more."""
    return ["-n", str(processes), "--dist", "worksteal"]


def rust(name: str, **environment: str) -> Part:
    return Part(name, [], environment)


LANES = {
    "quick": [
        [
            rust("Rust", PROPTEST_CASES="32", PROPTEST_RNG_SEED="1"),
            tests("unit", "not more", *beside(2), *IN_PROCESS),
            tests("end to end", "not more and beside and not serial", *beside(4), "tests/e2e"),
            tests("alone", "not more and (serial or not beside)", "tests/e2e"),
        ],
    ],
    "more": [
        [
            rust("Rust, more examples", PROPTEST_CASES="64", PROPTEST_RNG_SEED="1"),
            tests(
                "unit, more examples", "more or property", *beside(2), *IN_PROCESS, ETUDE_HYPOTHESIS="full"
            ),
            tests("end to end", "more and beside and not serial", *beside(4), "tests/e2e"),
            tests("alone", "more and (serial or not beside)", "--ignore=tests/e2e/guest", "tests/e2e"),
        ],
        [
            tests("guest", "not restarts", "tests/e2e/guest"),
            tests("guest, restarts", "restarts", "tests/e2e/guest"),
        ],
    ],
    "random": [
        [
            rust("Rust, random examples", PROPTEST_CASES="256"),
            tests("random examples", "property", *beside(2), *IN_PROCESS, ETUDE_HYPOTHESIS="random"),
        ]
    ],
}
"""The parts of a lane run one after another, lanes beside each other: the test machine takes one CPU, and leaves one to
tests that run alone."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suite", choices=sorted(LANES))
    parser.add_argument("--again", action="store_true", help="run what failed once more, alone")
    parser.add_argument(
        "--begin-within",
        type=float,
        default=math.inf,
        metavar="SECONDS",
        help="leave out parts that would begin later",
    )
    options = parser.parse_args()
    if isinstance(sys.stdout, io.TextIOWrapper):  # whatever a test prints, in any locale
        sys.stdout.reconfigure(errors="replace")
    RESULTS.mkdir(parents=True, exist_ok=True)
    take_signals()
    until = time.monotonic() + options.begin_within
    outcomes, left_out = run_lanes(LANES[options.suite], until)
    flaky = run_again(outcomes) if options.again else []
    status = summary(outcomes, flaky, left_out)
    write_times(outcomes, RESULTS / f"{options.suite}.tsv")
    if started.stopped_by:
        print(f"== stopped by {started.stopped_by.name}", flush=True)
        return 128 + started.stopped_by
    return status


class Started:
    """The programs that run now, and the signal that stops them; after it none is started."""

    def __init__(self) -> None:
        self.stopped_by: signal.Signals | None = None
        self.programs: set[subprocess.Popen[str]] = set()

    @contextmanager
    def program(self, command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", **how) as program:
            self.programs.add(program)
            if self.stopped_by:
                program.send_signal(self.stopped_by)
            try:
                yield program
                program.wait()
            finally:
                self.programs.discard(program)

    def stop(self, number: int, _: object) -> None:
        """The handler. A second SIGTERM does programs no harm (tests/support/stopping.py), a second SIGINT does."""
        self.stopped_by = signal.Signals(number)
        if number == signal.SIGINT and in_foreground():
            return
        for program in list(self.programs):
            program.send_signal(number)


def in_foreground() -> bool:
    """Whether ^C of a terminal reaches this program, and with it all that it started."""
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


started = Started()


def take_signals() -> None:
    """What is ignored at the start of a program stays so in all that it starts, as SIGINT is of a background job: a
    signal that is handled here is at its default there."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, started.stop)


def run_lanes(lanes: Sequence[Sequence[Part]], until: float) -> tuple[list[Outcome], list[str]]:
    """What came of the parts that could begin before `until`, of the monotonic clock, and the names of the others."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        running = [pool.submit(run_parts, parts, until, lane > 0) for lane, parts in enumerate(lanes)]
    outcomes = [outcome for lane in running for outcome in lane.result()[0]]
    return outcomes, [name for lane in running for name in lane.result()[1]]


def run_parts(
    parts: Sequence[Part], until: float, at_its_end: bool = False
) -> tuple[list[Outcome], list[str]]:
    """The same of one lane; `at_its_end`: what a part prints is shown when it has ended."""
    outcomes, left_out = [], []
    for part in parts:
        if started.stopped_by or time.monotonic() >= until:
            left_out.append(part.name)
        else:
            outcomes.append(run(part, at_its_end))
    return outcomes, left_out


def run(part: Part, at_its_end: bool = False) -> Outcome:
    print(f"== {part.name}", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        outcome = run_program(part, at_its_end)
    except (OSError, ElementTree.ParseError) as error:
        outcome = Outcome(part.name, failed=[f"could not be run: {error}"])
    outcome.elapsed_s = time.monotonic() - began
    print(f"== {part.name}: {outcome.elapsed_s:.0f} s", flush=True)
    return outcome


def run_program(part: Part, at_its_end: bool) -> Outcome:
    if not part.arguments:
        return cargo(part)
    if not at_its_end:
        return pytest(part)
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        outcome = pytest(part, output)
        output.seek(0)
        print(output.read(), end="", flush=True)
    return outcome


def pytest(part: Part, output: IO[str] | None = None) -> Outcome:
    with tempfile.TemporaryDirectory(dir=RESULTS, prefix="report-") as directory:
        report = Path(directory, "report.xml")
        # A file that cannot be imported costs the other files nothing.
        options = [f"--junitxml={report}", "--continue-on-collection-errors"]
        command = [sys.executable, "-m", "pytest", *options, *part.arguments]
        with started.program(command, env=environment(part), stdout=output) as program:
            pass
        status = program.returncode
        outcome = read_report(part.name, report) if report.exists() else Outcome(part.name)
        # 5: no test was selected, as where a whole suite has none for this part.
        if status not in (0, 1, 5) or (status == 1 and not outcome.failed) or not report.exists():
            outcome.failed.append(f"pytest ended with {status}")
    outcome.environment = part.environment
    return outcome


def environment(part: Part) -> dict[str, str]:
    """That of the user without what would change the verdict, and the part's own."""
    foreign = {name for name in os.environ if name in FOREIGN or name.startswith("PROPTEST_")}
    return {name: value for name, value in os.environ.items() if name not in foreign} | part.environment


def read_report(name: str, report: Path) -> Outcome:
    """What a JUnit report of pytest holds."""
    outcome = Outcome(name)
    for case in ElementTree.parse(report).iter("testcase"):
        if not case.get("name"):  # of a test that a signal ended
            continue
        test = identity(case.get("classname", ""), case.get("name", ""))
        # A test may fail in itself and again in its clean-up: two elements, one test.
        outcome.tests_s[test] = outcome.tests_s.get(test, 0.0) + float(case.get("time", "0"))
        if case.find("failure") is not None or case.find("error") is not None:
            if test not in outcome.failed:
                outcome.failed.append(test)
        elif (skip := case.find("skipped")) is not None:
            outcome.skipped += 1
            outcome.reasons[skip.get("message", "").partition("\n")[0]] += 1
        else:
            outcome.passed += 1
    return outcome


def identity(classname: str, name: str) -> str:
    """What pytest takes for a test: its file, class and name; of a file that could not be imported, the file."""
    if not classname:
        return name.replace(".", "/") + ".py"
    module = re.sub(r"(\.Test\w*)+$", "", classname)
    classes = classname.removeprefix(module).split(".")[1:]
    return "::".join([module.replace(".", "/") + ".py", *classes, name])


def cargo(part: Part) -> Outcome:
    # Each program of tests has a limit, as each test in Python has. With --foreground an interrupt reaches it.
    limit = f'target."cfg(unix)".runner=["timeout","--foreground","--kill-after=10","{PROGRAM_LIMIT_S}"]'
    command = [CARGO, "--config", limit, "test", "--profile", "checks", "--workspace", "--no-fail-fast"]
    command += ["--tests", "--", "--exact", *part.engine] if part.engine else []
    # Into a file: a process that a test leaves behind would hold a pipe open.
    with (
        tempfile.TemporaryFile("w+", errors="replace", dir=RESULTS) as output,
        started.program(
            command, env=environment(part), stdout=output.fileno(), stderr=subprocess.STDOUT
        ) as program,
        open(f"/proc/self/fd/{output.fileno()}", errors="replace") as written,
    ):
        outcome = read_cargo(part.name, shown(written, program))
    if program.returncode and not outcome.failed:
        outcome.failed.append(f"cargo test ended with {program.returncode}")
    outcome.environment, outcome.of_engine = part.environment, True
    return outcome


def shown(written: IO[str], program: subprocess.Popen[str]) -> Iterator[str]:
    """The lines of a file, printed as they come, until the program that writes it has ended."""
    line, ended = "", False
    while not ended:
        ended = program.poll() is not None
        while piece := written.readline():
            print(piece, end="", flush=True)
            line += piece
            if line.endswith("\n"):
                yield line
                line = ""
        if not ended:
            time.sleep(0.1)
    if line:
        yield line


def read_cargo(name: str, lines: Iterable[str]) -> Outcome:
    """What `cargo test` printed of several programs of tests."""
    outcome = Outcome(name)
    unnamed = 0
    endless: list[str] = []
    for line in lines:
        if found := re.match(r"test (\S+)(?: - .*)? \.\.\. FAILED", line):
            outcome.failed.append(found[1])
            unnamed -= 1
        elif found := re.match(r"test (\S+)(?: - .*)? \.\.\. ok", line):
            outcome.passed_names.add(found[1])
        elif found := re.match(r"test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored", line):
            outcome.passed += int(found[1])
            unnamed += int(found[2])
            outcome.skipped += int(found[3])
            endless = []
        elif found := re.match(r"test (\S+) has been running for over", line):
            endless.append(found[1])
        elif re.match(r"error: could not compile ", line):
            outcome.failed.append(line.strip())
        # A program of tests that was killed: by the limit (124), or by a signal.
        elif found := re.search(r"didn't exit successfully: `(.*)` \((exit status: 124|signal: .*)\)", line):
            outcome.failed.append(" ".join([Path(found[1].split()[-1]).name, f"({found[2]})", *endless]))
            endless = []
    if unnamed > 0:
        outcome.failed.append(f"{unnamed} more, whose names are above")
    return outcome


def run_again(outcomes: list[Outcome]) -> list[str]:
    """Tests that passed in their second run, made as the first was, taken from the failed ones."""
    failed = {
        outcome.name: [
            test for test in outcome.failed if ".py::" in test or (outcome.of_engine and " " not in test)
        ]
        for outcome in outcomes
    }
    if sum(map(len, failed.values())) > FEW or started.stopped_by:
        return []
    flaky = []
    for outcome in outcomes:
        if tried := failed.get(outcome.name):
            chosen = ([], outcome.environment, tried) if outcome.of_engine else (tried, outcome.environment)
            second = run(Part(f"{outcome.name}, second run", *chosen))
            ran = second.passed_names if outcome.of_engine else second.tests_s
            passed = [test for test in tried if test in ran and test not in second.failed]
            # Which test a second run skipped it does not say; a skip is no pass.
            for test in passed if not second.skipped else ():
                outcome.failed.remove(test)
                outcome.passed += 1
                flaky.append(test)
    return flaky


def summary(outcomes: list[Outcome], flaky: list[str], left_out: Sequence[str] = ()) -> int:
    print("\n== time by part")
    for outcome in outcomes:
        counts = f"{outcome.passed:6d} passed {len(outcome.failed):3d} failed {outcome.skipped:4d} skipped"
        print(f"{outcome.elapsed_s:8.0f} s {counts}   {outcome.name}")
    times = [(took, test) for outcome in outcomes for test, took in outcome.tests_s.items()]
    if times:
        print(f"== the {SLOWEST} slowest tests")
    for took, test in sorted(times, reverse=True)[:SLOWEST]:
        print(f"{took:8.1f} s {test}")
    reasons = sum((outcome.reasons for outcome in outcomes), Counter())
    for reason, count in sorted(reasons.items()):
        print(f"== {count} SKIPPED: {reason}")
    why = "stopped before" if started.stopped_by else "no time was left"
    for name in left_out:
        print(f"== NOT RUN, {why}: {name}")
    for test in flaky:
        print(f"== FLAKY, passed only when run again: {test}")
    failed = [f"{outcome.name}: {test}" for outcome in outcomes for test in outcome.failed]
    for test in failed:
        print(f"== FAILED {test}")
    passed, skipped = sum(each.passed for each in outcomes), sum(each.skipped for each in outcomes)
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


def write_times(outcomes: Sequence[Outcome], path: Path) -> None:
    """What each directory and each test took, the longest first: part, seconds, tests, directory or test."""
    places: dict[tuple[str, str], list[float]] = {}
    for outcome in outcomes:
        for test, took in outcome.tests_s.items():
            file = test.partition("::")[0]
            for place in (file.rpartition("/")[0], file, test):
                places.setdefault((outcome.name, place), []).append(took)
    rows = sorted(((sum(took), len(took), *key) for key, took in places.items()), reverse=True)
    lines = [f"{part}\t{seconds:.1f}\t{count}\t{place}\n" for seconds, count, part, place in rows]
    path.write_text("part\tseconds\ttests\tplace\n" + "".join(lines), encoding="utf-8", errors="replace")


if __name__ == "__main__":
    sys.exit(main())
