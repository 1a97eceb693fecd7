"""How long a test may take, so that one that hangs is a failure with a name, and those after it run.

The limits are generous: they are no measure of speed. A test has one of its own by `@pytest.mark.timeout(SECONDS)`.
"""

import faulthandler
import signal
import sys
from collections.abc import Iterable
from typing import Any

import pytest
import pytest_timeout

from support import profiles

IN_PROCESS_S = 120.0
END_TO_END_S = 300.0
MORE_S = 900.0
GUEST_S = 1800.0
SHRINK_S = 300.0
"""What Hypothesis takes at most to make a failing example smaller."""


REPORT_S = 10.0
"""What pytest takes at most to write what failed, before it cancels the limit."""
HELD_S = 60.0
"""After so much more the process ends: what holds the interpreter, such as a regular expression, runs no handler."""


class OutOfTime(BaseException):
    """No Exception, and no failure of pytest: Hypothesis would try the example that hangs once more."""


def limit_s(area: Iterable[str], marks: Iterable[str]) -> float:
    """For a test in `area` (its path) with these marks: for set-up and call together, and again for the clean-up."""
    if "guest" in area:
        return GUEST_S
    if "more" in marks:
        return MORE_S
    if "e2e" in area:
        return END_TO_END_S
    return IN_PROCESS_S * profiles.examples_ratio() + SHRINK_S if "property" in marks else IN_PROCESS_S


def pytest_timeout_set_timer(item: Any, settings: pytest_timeout.Settings) -> bool:
    """In place of pytest-timeout's own, which fails the test in a way that Hypothesis catches."""

    def late(number: int, frame: object) -> None:
        if not pytest_timeout.is_debugging():
            raise OutOfTime(f"not done within {settings.timeout:g} s")

    def start() -> None:
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, settings.timeout + REPORT_S)
        faulthandler.dump_traceback_later(settings.timeout + HELD_S, exit=True, file=sys.__stderr__ or 2)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.cancel_dump_traceback_later()

    item.start_timeout, item.cancel_timeout = start, cancel
    start()
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: Any) -> None:
    """A failure has cancelled the limit, for the sake of debuggers."""
    if hasattr(item, "start_timeout"):
        item.start_timeout()
