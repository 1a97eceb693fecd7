"""What all tests share: visible skips for what a machine lacks, and what each part of the tests took.

Markers: `needs_program("groff", package="groff-base")`, `needs_root`, `serial`, `slow`; and `beside`, which all have
that may run beside each other, as `make test` runs them (`pytest -n 2 -m beside`). Unit tests have it by where they
stand. In tests/e2e a file says so itself when it neither measures nor needs the machine to be quiet; a test in it that
does is `serial`, which counts for more.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Container, Iterable

import pytest
from hypothesis import settings

# Matrices are small, and idle threads of OpenBLAS spin: on a busy machine they cost fifty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Seconds that each part may take before a warning; a part is a directory here, `e2e beside` what of e2e may run beside
# others, `serial` what has this mark in all other directories, `unit` the rest of these. It is time on the wall: what
# runs at once counts once.
SHARE_S = {
    "unit": 150.0,
    "serial": 40.0,
    "e2e beside": 200.0,
    "e2e": 200.0,
    "packaging": 120.0,
    "guest": 400.0,
}
DIRECTORIES = ("e2e", "packaging", "guest")

# All checks together try the same examples each time: what they say of a change is about the change. Single runs of
# pytest go on looking for others.
settings.register_profile("checks", derandomize=True)
if os.environ.get("ETUDE_CI_UNDER_TIMEOUT"):
    settings.load_profile("checks")

ran: dict[str, list[tuple[float, float]]] = defaultdict(list)
"""When each step of the tests of a part began and ended."""


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "needs_program(name, package=None): skipped, visibly, where the program is not installed",
        "needs_root: skipped, visibly, for other users",
        "slow: takes more than a few seconds",
        "beside: may run beside others that have this mark; a file of tests/e2e says it, others need not",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if part(item.nodeid, item.keywords) == "unit":
            item.add_marker("beside")
        for reason in lacking(item):
            item.add_marker(pytest.mark.skip(reason=reason))


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


def part(nodeid: str, keywords: Container[str]) -> str:
    """Of a test, of which its process and the one that collects the reports of several know no more than this."""
    directories = nodeid.split("::")[0].split("/")[:-1]
    named = next((each for each in DIRECTORIES if each in directories), None)
    if named == "e2e" and "beside" in keywords and "serial" not in keywords:
        return "e2e beside"
    return named or ("serial" if "serial" in keywords else "unit")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    ran[part(report.nodeid, report.keywords)].append((report.start, report.stop))


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds that are in at least one of them."""
    seconds, until = 0.0, 0.0
    for start, stop in sorted(spans):
        seconds += max(stop - max(start, until), 0.0)
        until = max(until, stop)
    return seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Just above pytest's closing line, which stays the last one."""
    for name, spans in sorted(ran.items()):
        seconds = covered(spans)
        terminalreporter.write_line(f"== {name} tests: {seconds:.1f} s of {SHARE_S[name]:.0f} s")
        if seconds > SHARE_S[name]:
            terminalreporter.write_line(f"== WARNING: {name} tests took more than their share")
