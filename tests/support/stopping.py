"""SIGTERM and SIGHUP end the tests as SIGINT does: fixtures clean up first, so that nothing stays mounted or running.

Each may come twice, and the second one must not end the cleaning up: timeout(1) and a terminal that closes send it to
all processes of a group, and `make test` sends it on.
"""

import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

import pytest

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
SAME_S = 2.0
"""Within this time of the first a further signal is taken for the same one."""


def take() -> None:
    """Take both, but where they were ignored at the start, as SIGHUP is below nohup(1)."""
    process = os.getpid()
    began = -SAME_S

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal began
        if os.getpid() != process:  # of a test's own, forked
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        if time.monotonic() - began < SAME_S:
            return
        began = time.monotonic()
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Both as a program finds them at its start; for tests that send one to this process."""
    former = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)
