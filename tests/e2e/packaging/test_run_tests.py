"""`make test` and `make test-more` run every test, and their end names what failed."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.mark.expression import Expression

pytestmark = [pytest.mark.beside, pytest.mark.quick]
Tool = Callable[[str], ModuleType]

TESTS = """
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2
@pytest.mark.parametrize("word", ["a b", "c[d]"])
def test_of_words(word): assert word == "a b"
@pytest.fixture
def broken():
    yield
    raise OSError("clean-up")
def test_fails_twice(broken): assert 1 == 2
def test_whose_clean_up_fails(broken): pass
@pytest.mark.skip(reason="no program x")
def test_is_skipped(): assert 1 == 2
class TestOfAClass:
    def test_fails(self): assert 1 == 2
"""


@pytest.fixture
def runner(tool: Tool) -> Any:
    return tool("run_tests")


@pytest.mark.parametrize("place", ["tests/unit", "tests/e2e"])
@pytest.mark.parametrize("marks", list(itertools.product([False, True], repeat=3)))
def test_each_test_belongs_to_one_part(runner: Any, place: str, marks: tuple[bool, ...]) -> None:
    marked = dict(zip(("more", "beside", "serial"), marks, strict=True)) | {"property": False}
    found = [
        part.name
        for suite in ("quick", "more")
        for lane in runner.LANES[suite]
        for part in lane
        if part.arguments and not part.name.startswith("guest")
        if any(place.startswith(word) for word in part.arguments)
        if Expression.compile(part.arguments[1]).evaluate(lambda name, **_: marked[name])
    ]
    assert len(found) == 1


def test_verdicts_rest_on_the_same_examples_each_time(runner: Any) -> None:
    for suite, fixed in (("quick", True), ("more", True), ("random", False)):
        rust = [part for lane in runner.LANES[suite] for part in lane if not part.arguments]
        assert [("PROPTEST_RNG_SEED" in part.environment) for part in rust] == [fixed]


def test_a_report_is_read_with_each_test_once(runner: Any, tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    report = tmp_path / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        "test_some.py",
    ]
    assert subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode == 1
    outcome = runner.read_report("some", report)
    names = ["test_fails", "test_of_words[c[d]]", "test_fails_twice", "test_whose_clean_up_fails"]
    names.append("TestOfAClass::test_fails")
    assert outcome.failed == [f"test_some.py::{name}" for name in names]
    assert (outcome.passed, outcome.skipped) == (2, 1)
    assert outcome.reasons == {"no program x": 1}
    assert len(outcome.tests_s) == 8


def test_times_are_kept_by_directory_file_and_test(runner: Any, tmp_path: Path) -> None:
    took = {
        "tests/e2e/a/test_x.py::test_1": 2.0,
        "tests/e2e/a/test_x.py::test_2": 1.0,
        "tests/e2e/b/test_y.py::test": 4.0,
    }
    runner.write_times([runner.Outcome("alone", tests_s=took)], tmp_path / "more.tsv")
    rows = [line.split("\t") for line in (tmp_path / "more.tsv").read_text().splitlines()[1:]]
    assert ["alone", "3.0", "2", "tests/e2e/a"] in rows
    assert ["alone", "3.0", "2", "tests/e2e/a/test_x.py"] in rows
    assert [float(row[1]) for row in rows] == [4.0, 4.0, 4.0, 3.0, 3.0, 2.0, 1.0]


def test_a_failure_anywhere_is_the_exit_status_and_is_named(runner: Any, capsys: Any) -> None:
    good = runner.Outcome("unit", 1.0, passed=3, tests_s={"a.py::test_a": 0.5, "a.py::test_b": 2.0})
    bad = runner.Outcome("Rust", 1.0, passed=2, failed=["replay::order::waits"])
    assert runner.summary([good], []) == 0
    assert runner.summary([good, bad], ["a.py::test_b"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "== FAILED Rust: replay::order::waits" in lines
    assert any("FLAKY" in line and "a.py::test_b" in line for line in lines)
    assert lines[-1] == "5 passed, 1 failed, 0 skipped"


@pytest.fixture
def made(runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """Runs a part of pytest on one file with this text."""
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    monkeypatch.setattr(runner, "ROOT", tmp_path)

    def make(**texts: str) -> Any:
        for name, text in texts.items():
            (tmp_path / f"test_{name}.py").write_text(text)
        return runner.run(
            runner.Part("made", ["-p", "no:cacheprovider", *(f"test_{name}.py" for name in texts)])
        )

    return make


def test_a_part_whose_program_ends_without_a_report_has_failed_whatever_its_status(made: Any) -> None:
    outcome = made(some="import os\ndef test_exits(): os._exit(0)\ndef test_fails(): assert 0\n")
    assert len(outcome.failed) == 1


def test_a_file_that_cannot_be_imported_is_named_and_the_others_run(made: Any) -> None:
    outcome = made(broken="import no_such_module\n", good="def test_passes(): pass\n")
    assert (outcome.failed, outcome.passed) == (["test_broken.py"], 1)


def test_a_report_that_is_no_xml_and_a_cargo_that_is_not_there_are_failures(
    runner: Any, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks = (
        "import atexit\natexit.register(lambda: open(__import__('sys').argv[1][11:], 'w').write('<a><b'))\n"
    )
    assert len(made(some=breaks + "def test_passes(): pass\n").failed) == 1
    monkeypatch.setattr(runner, "CARGO", "/nonexistent/cargo")
    assert len(runner.run(runner.rust("Rust")).failed) == 1


def test_the_environment_of_the_user_chooses_no_tests_and_writes_no_golden_files(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = ["PYTEST_ADDOPTS", "ETUDE_GOLDEN", "ETUDE_HYPOTHESIS", "PROPTEST_CASES", "PROPTEST_RNG_SEED"]
    for name in foreign:
        monkeypatch.setenv(name, "1")
    seen = runner.environment(runner.rust("Rust", PROPTEST_CASES="32"))
    assert [seen.get(name) for name in foreign] == [None, None, None, "32", None]


CARGO_PRINTED = """
test fails ... FAILED
test fine ... ok
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.04s
test waits has been running for over 60 seconds
  process didn't exit successfully: `timeout --foreground 9 /t/b-a16b` (exit status: 124)
  process didn't exit successfully: `timeout --foreground 9 /t/c-a16b` (signal: 6, SIGABRT: process abort signal)
no line endtest noise ... FAILED
test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.04s
error: could not compile `y` (test "d") due to 1 previous error
"""


def test_of_cargo_each_crash_hang_and_crate_that_does_not_compile_is_a_failure(runner: Any) -> None:
    outcome = runner.read_cargo("Rust", CARGO_PRINTED.splitlines(keepends=True))
    assert (outcome.passed, outcome.skipped) == (3, 1)
    failed = outcome.failed
    assert failed[0] == "fails"
    assert all(word in failed[1] for word in ("b-a16b", "124", "waits"))
    assert "c-a16b" in failed[2]
    assert "waits" not in failed[2]
    assert "`y`" in failed[3]
    assert failed[4].startswith("1 more")
    assert len(failed) == 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_lets_fixtures_clean_up_and_no_part_begins_after_it(
    runner: Any,
    made: Any,
    monkeypatch: pytest.MonkeyPatch,
    repository: Path,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    begun, cleaned = tmp_path / "begun", tmp_path / "cleaned"
    (tmp_path / "conftest.py").write_text(f"""
import sys
sys.path.insert(0, {str(repository / "tests")!r})
from support import stopping
stopping.take()
""")
    monkeypatch.setattr(runner, "in_foreground", lambda: False)

    def stop() -> None:
        while not begun.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    former = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    runner.take_signals()
    try:
        threading.Thread(target=stop, daemon=True).start()
        made(
            some=f"""
import pathlib, threading, pytest
@pytest.fixture
def made():
    yield
    pathlib.Path({str(cleaned)!r}).touch()
def test_waits(made):
    pathlib.Path({str(begun)!r}).touch()
    threading.Event().wait(250)
"""
        )
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
    assert runner.started.stopped_by == number
    assert cleaned.exists()
    assert runner.run_parts([runner.Part("next", [])], math.inf) == ([], ["next"])


def test_a_part_for_which_no_time_is_left_is_named(
    runner: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    now = iter([0.0, 9.0, 11.0])
    monkeypatch.setattr(runner.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(runner, "run", lambda part, _: runner.Outcome(part.name, passed=1))
    parts = [runner.Part(name, []) for name in ("unit", "alone", "guest")]
    outcomes, left_out = runner.run_parts(parts, 10.0)
    assert ([each.name for each in outcomes], left_out) == (["unit", "alone"], ["guest"])
    assert runner.summary(outcomes, [], left_out) == 0
    assert any("NOT RUN" in line and "guest" in line for line in capsys.readouterr().out.splitlines())


def test_lanes_run_beside_each_other_and_what_the_second_prints_stays_together(
    runner: Any, monkeypatch: pytest.MonkeyPatch, capfd: Any, tmp_path: Path
) -> None:
    """The part of the first lane waits for the end of the second lane's: one after the other they would never end."""
    (tmp_path / "test_first.py").write_text(f"""
import pathlib, time
def test_first():
    while not pathlib.Path({str(tmp_path / "ended")!r}).exists(): time.sleep(0.01)
""")
    (tmp_path / "test_second.py").write_text(f"""
import pathlib
def test_second(): pathlib.Path({str(tmp_path / "ended")!r}).touch()
def test_fails(): assert 0
""")
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    lanes = [
        [runner.tests(name, "", "-p", "no:cacheprovider", f"{tmp_path}/test_{name}.py")]
        for name in ("first", "second")
    ]
    outcomes, left_out = runner.run_lanes(lanes, math.inf)
    assert [(each.name, each.passed, len(each.failed)) for each in outcomes] == [
        ("first", 1, 0),
        ("second", 1, 1),
    ]
    assert not left_out
    assert "test_second.py" in capfd.readouterr().out


def test_tests_of_the_engine_run_again_by_their_names(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run is of what failed alone; what it does not run has not passed."""
    fake = tmp_path / "cargo"
    fake.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "*--exact*)\n"
        "    echo 'test a::luck ... ok'; echo 'test a::broken ... FAILED'\n"
        "    echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured';;\n"
        "*)\n"
        "    echo 'test a::luck ... FAILED'; echo 'test a::broken ... FAILED'; echo 'test a::gone ... FAILED'\n"
        "    echo 'test result: FAILED. 0 passed; 3 failed; 0 ignored; 0 measured';;\n"
        "esac\n"
        "exit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(runner, "CARGO", str(fake))
    first = runner.run(runner.Part("Rust", []))
    assert runner.run_again([first]) == ["a::luck"]
    assert (first.passed, sorted(first.failed)) == (1, ["a::broken", "a::gone"])


def test_what_passes_when_run_again_is_flaky_and_what_fails_again_has_failed(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = runner.Outcome("alone", failed=["t.py::test_luck", "t.py::test_wrong"])
    second = runner.Outcome(
        "again", failed=["t.py::test_wrong"], tests_s={"t.py::test_luck": 1.0, "t.py::test_wrong": 1.0}
    )
    monkeypatch.setattr(runner, "run", lambda part: second)
    assert runner.run_again([first]) == ["t.py::test_luck"]
    assert first.failed == ["t.py::test_wrong"]
    many = runner.Outcome("alone", failed=[f"t.py::test_{each}" for each in range(runner.FEW + 1)])
    assert runner.run_again([many]) == []


def test_a_second_run_tries_as_many_examples_as_the_first_and_a_skip_is_no_pass(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, skipped = {"ETUDE_HYPOTHESIS": "full"}, "t.py::test_skipped"
    outcomes = [
        runner.Outcome("more examples", failed=["t.py::test_rare"], environment=full),
        runner.Outcome("alone", failed=[skipped]),
    ]

    def again(part: Any) -> Any:
        rare = part.environment == full
        return runner.Outcome(
            part.name, failed=["t.py::test_rare"] if rare else [], skipped=not rare, tests_s={skipped: 0.0}
        )

    monkeypatch.setattr(runner, "run", again)
    assert runner.run_again(outcomes) == []
    assert [outcome.failed for outcome in outcomes] == [["t.py::test_rare"], [skipped]]
