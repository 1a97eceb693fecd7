"""What all tests share: visible skips for what a machine lacks, and what each part of the tests took.

Markers: `needs_program("groff", package="groff-base")`, `needs_root`, `serial`, `slow`.
"""

import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

# Seconds that each part may take before a warning; a part is a directory here, `unit` is all others.
SHARE_S = {"unit": 180.0, "e2e": 240.0, "packaging": 120.0}

# All checks together try the same examples each time: what they say of a change is about the change. Single runs of
# pytest go on looking for others.
settings.register_profile("checks", derandomize=True)
if os.environ.get("ETUDE_CI_UNDER_TIMEOUT"):
    settings.load_profile("checks")

took_s: dict[str, float] = defaultdict(float)
part_of: dict[str, str] = {}


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "needs_program(name, package=None): skipped, visibly, where the program is not installed",
        "needs_root: skipped, visibly, for other users",
        "slow: takes more than a few seconds",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        part_of[item.nodeid] = part(item.path)
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


def part(path: Path) -> str:
    parts = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    return parts[0] if parts and parts[0] in SHARE_S else "unit"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    took_s[part_of.get(report.nodeid, "unit")] += report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Just above pytest's closing line, which stays the last one."""
    for name, seconds in sorted(took_s.items()):
        terminalreporter.write_line(f"== {name} tests: {seconds:.1f} s of {SHARE_S[name]:.0f} s")
        if seconds > SHARE_S[name]:
            terminalreporter.write_line(f"== WARNING: {name} tests took more than their share")
