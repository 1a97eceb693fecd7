"""Signals that end a search, a map or an experiment over a pool."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class EndedBySignal(KeyboardInterrupt):
    """SIGTERM or SIGHUP, told as Ctrl-C is: the harness stops what it has started."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise `EndedBySignal` in here."""

    def end(number: int, _: FrameType | None) -> None:
        raise EndedBySignal(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
