"""A test that hangs is a failure with a name, wherever it hangs, and the others run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.limits import END_TO_END_S, GUEST_S, IN_PROCESS_S, MORE_S, limit_s

pytestmark = [pytest.mark.beside, pytest.mark.quick]

TESTS = """
import threading
import pytest
from hypothesis import given, strategies

limited = pytest.mark.timeout(0.2)

def hang():
    threading.Event().wait()

@pytest.fixture
def endless():
    yield
    hang()

@limited
def test_hangs(): hang()
@limited
@given(strategies.integers())
def test_hangs_on_examples(number):
    if number: hang()
@limited
def test_hangs_whatever_is_raised():
    while True:
        try: hang()
        except Exception: pass
@limited
def test_whose_clean_up_hangs(endless): pass
@limited
def test_fails_and_its_clean_up_hangs(endless): assert 1 == 2
def test_passes(): pass
"""


@pytest.fixture
def runner(tool: Any) -> Any:
    return tool("run_tests")


@pytest.mark.parametrize("processes", ["0", "1"], ids=["alone", "beside"])
def test_each_test_that_hangs_fails_and_the_next_runs(
    runner: Any, repository: Path, tmp_path: Path, processes: str
) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    report = tmp_path / "report.xml"
    words = ["-p", "support.limits", "-p", "no:cacheprovider", "-n", processes, f"--junitxml={report}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_some.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(repository / "tests")},
        check=False,
        capture_output=True,
        timeout=200,
    )
    assert ended.returncode == 1
    outcome = runner.read_report("some", report)
    assert outcome.failed == [
        "test_some.py::test_hangs",
        "test_some.py::test_hangs_on_examples",
        "test_some.py::test_hangs_whatever_is_raised",
        "test_some.py::test_whose_clean_up_hangs",
        "test_some.py::test_fails_and_its_clean_up_hangs",
    ]
    # Of the test with a clean-up that hangs the call has passed: an element of its own.
    assert set(outcome.tests_s) - set(outcome.failed) == {"test_some.py::test_passes"}


HOLDS = """
import re
import pytest
from support import limits

limits.HELD_S = 0.3

@pytest.mark.timeout(0.2)
def test_holds_the_interpreter(): re.match("(a|a)+$", 60 * "a" + "b")
def test_passes(): pass
"""


def test_what_holds_the_interpreter_ends_with_its_process_and_the_next_runs(
    runner: Any, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(HOLDS)
    report = tmp_path / "report.xml"
    words = ["-p", "support.limits", "-p", "no:cacheprovider", "-n", "1", f"--junitxml={report}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_some.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(repository / "tests")},
        check=False,
        capture_output=True,
        timeout=200,
    )
    assert ended.returncode == 1
    outcome = runner.read_report("some", report)
    assert outcome.failed == ["test_some.py::test_holds_the_interpreter"]
    assert outcome.passed == 1


@pytest.mark.parametrize(
    ("file", "marks", "limit"),
    [
        ("tests/unit/test_engine.py", {"beside"}, IN_PROCESS_S),
        ("tests/unit/test_engine.py", {"beside", "more"}, MORE_S),
        ("tests/e2e/script/test_restart.py", {"quick"}, END_TO_END_S),
        ("tests/e2e/script/test_restart.py", {"more"}, MORE_S),
        ("tests/e2e/guest/test_machine.py", {"more"}, GUEST_S),
    ],
)
def test_the_limit_is_that_of_the_area(file: str, marks: set[str], limit: float) -> None:
    assert limit_s(Path(file).parts, marks) == limit


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    limited = [item.get_closest_marker("timeout") for item in request.session.items]
    assert all(mark is not None and mark.args[0] > 0 for mark in limited)
