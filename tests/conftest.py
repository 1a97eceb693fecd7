"""Which tests run when, and visible skips for what a machine lacks.

A test says where it belongs by markers, and by nothing else:

- `make test` runs all of tests/unit, tests/property and tests/golden that is not `more`, and of tests/e2e what is
  `quick`; `make test-more` runs the rest, and what is `property` (each test with @given) with more examples.
- Tests outside tests/e2e run beside each other. `beside`, of a file in tests/e2e: may run beside others that have this
  mark, since nothing in it measures or needs the machine to be quiet. A `serial` test in it, one that uses a resource
  of the whole machine (mounts, cgroups, caches), runs alone all the same; the test machine runs beside all of them.
- `restarts`: restarts the test machine again and again; a part of its own at the end of `make test-more`.
- `golden` compares what a user reads with a file in tests/golden/words; `make golden` writes these files anew.
- `timeout(SECONDS)`: a limit of its own, after which it fails, in place of that of its area
  (tests/support/limits.py).
- `needs_program("groff", package="groff-base")` and `needs_root` are skipped, visibly, where these are missing.
"""

import os
import shutil
from pathlib import Path

import pytest

# Matrices are small, and idle threads of OpenBLAS spin: on a busy machine they cost fifty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from support import limits, profiles, stopping
from support.golden import golden as golden
from support.golden import note_skip, runs_all, write_golden_files
from support.places import TESTS
from support.stopping import default_signals as default_signals

# Where others may write, nothing is trusted (etude.osutil.trust): the user's own umask must not decide what fails.
os.umask(0o022)
profiles.load()

MARKERS = (
    "needs_program(name, package=None): skipped, visibly, where the program is not installed",
    "needs_root: skipped, visibly, for other users",
    "beside: of tests/e2e, may run beside others that have this mark",
    "serial: uses a resource of the whole machine (mounts, cgroups, caches); never run beside another test",
    "quick: of tests/e2e, runs in `make test`",
    "more: runs in `make test-more`",
    "property: holds for all inputs; has @given",
    "restarts: restarts the test machine again and again, which takes minutes",
)


def pytest_configure(config: pytest.Config) -> None:
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    config.pluginmanager.register(limits)
    stopping.take()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        end_to_end = "e2e" in item.path.parts
        if end_to_end and not item.get_closest_marker("quick"):
            item.add_marker("more")
        if not end_to_end and item.get_closest_marker("serial"):
            raise pytest.UsageError(f"{item.nodeid}: a serial test stands in tests/e2e")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if not item.get_closest_marker("timeout"):
            marks = {mark.name for mark in item.iter_markers()}
            item.add_marker(pytest.mark.timeout(limits.limit_s(Path(item.location[0]).parts, marks)))
        for reason in lacking(item):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        note_skip(TESTS.parent / report.location[0])


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    write_golden_files(passed=exitstatus == 0 and runs_all(session.config))


def lacking(item: pytest.Item) -> list[str]:
    """Why the test cannot run on this machine, a line each."""
    reasons = []
    for marker in item.iter_markers("needs_program"):
        program = marker.args[0]
        package = marker.kwargs.get("package") or program
        if shutil.which(program) is None:
            reasons.append(f"no program {program}: install the Debian package {package}")
    if item.get_closest_marker("needs_root") and os.geteuid() != 0:
        reasons.append("only root may do this")
    return reasons
