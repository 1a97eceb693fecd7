"""Runs the tests in parts, all of them even where one fails, and ends with what failed and what took longest.

    python packaging/run_tests.py quick [--again]    # `make test`
    python packaging/run_tests.py more [--again]     # `make test-more`
    python packaging/run_tests.py random             # `make test-random`: property tests, new examples each time

A marker says which test belongs where (tests/conftest.py). With `--again` tests that failed run once more, alone, if
they are few: what passes only then is listed as flaky. With `--begin-within SECONDS` a part that would begin later is
left out, and named at the end. The exit status is 1 where a test failed in its last run, or a part could not be run.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "test-results"
CARGO = os.environ.get("CARGO", "cargo")
IN_PROCESS = ["tests/unit", "tests/property", "tests/golden"]
SLOWEST = 10
FEW = 5
"""So many failures at most are run again: more have a common cause."""


@dataclass(frozen=True)
class Part:
    """Tests that run together: of pytest with these arguments, or all of the engine's where there are none."""

    name: str
    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Outcome:
    """Of one part."""

    name: str
    elapsed_s: float = 0.0
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    tests_s: dict[str, float] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


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
            rust("Rust, more examples", PROPTEST_CASES="256", PROPTEST_RNG_SEED="1"),
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
    # What is ignored at the start of a program stays so in all that it starts, as SIGINT is of a background job: a
    # signal that is handled here is at its default there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    RESULTS.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.begin_within
    outcomes, left_out = run_lanes(LANES[options.suite], until)
    flaky = run_again(outcomes) if options.again else []
    return summary(outcomes, flaky, left_out)


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
        if time.monotonic() < until:
            outcomes.append(run(part, at_its_end))
        else:
            left_out.append(part.name)
    return outcomes, left_out


def run(part: Part, at_its_end: bool = False) -> Outcome:
    print(f"== {part.name}", flush=True)
    began = time.monotonic()
    if not part.arguments:
        outcome = cargo(part)
    elif at_its_end:
        with tempfile.TemporaryFile("w+") as output:
            outcome = pytest(part, output)
            output.seek(0)
            print(output.read(), end="", flush=True)
    else:
        outcome = pytest(part)
    outcome.elapsed_s = time.monotonic() - began
    print(f"== {part.name}: {outcome.elapsed_s:.0f} s", flush=True)
    return outcome


def pytest(part: Part, output: IO[str] | None = None) -> Outcome:
    report = RESULTS / f"{part.name.replace(' ', '-').replace(',', '')}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *part.arguments]
    environment = os.environ | part.environment
    status = subprocess.run(command, cwd=ROOT, env=environment, stdout=output, check=False).returncode
    outcome = read_report(part.name, report) if report.exists() else Outcome(part.name)
    outcome.environment = part.environment
    # 5: no test was selected, as where a whole suite has none for this part.
    if status not in (0, 1, 5) or (status == 1 and not outcome.failed):
        outcome.failed.append(f"{part.name}: pytest ended with {status}")
    return outcome


def read_report(name: str, report: Path) -> Outcome:
    """What a JUnit report of pytest holds."""
    outcome = Outcome(name)
    for case in ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        # A test may fail in itself and again in its clean-up: two elements, one test.
        outcome.tests_s[test] = outcome.tests_s.get(test, 0.0) + float(case.get("time", "0"))
        if case.find("failure") is not None or case.find("error") is not None:
            if test not in outcome.failed:
                outcome.failed.append(test)
        elif case.find("skipped") is not None:
            outcome.skipped += 1
        else:
            outcome.passed += 1
    return outcome


def cargo(part: Part) -> Outcome:
    outcome = Outcome(part.name)
    command = [CARGO, "test", "--profile", "checks", "--workspace", "--no-fail-fast"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | part.environment,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := re.match(r"test (\S+)(?: - .*)? \.\.\. FAILED", line):
                outcome.failed.append(found[1])
            elif found := re.match(r"test result: \S+ (\d+) passed; \d+ failed; (\d+) ignored", line):
                outcome.passed += int(found[1])
                outcome.skipped += int(found[2])
    if process.returncode and not outcome.failed:
        outcome.failed.append(f"cargo test ended with {process.returncode}")
    return outcome


def run_again(outcomes: list[Outcome]) -> list[str]:
    """Tests that passed in their second run, made as the first was, taken from the failed ones."""
    failed = {outcome.name: [test for test in outcome.failed if ".py::" in test] for outcome in outcomes}
    if sum(map(len, failed.values())) > FEW:
        return []
    flaky = []
    for outcome in outcomes:
        if tried := failed.get(outcome.name):
            second = run(Part(f"{outcome.name}, second run", tried, outcome.environment))
            passed = [test for test in tried if test in second.tests_s and test not in second.failed]
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
    for name in left_out:
        print(f"== NOT RUN, no time was left: {name}")
    for test in flaky:
        print(f"== FLAKY, passed only when run again: {test}")
    failed = [f"{outcome.name}: {test}" for outcome in outcomes for test in outcome.failed]
    for test in failed:
        print(f"== FAILED {test}")
    passed, skipped = sum(each.passed for each in outcomes), sum(each.skipped for each in outcomes)
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
