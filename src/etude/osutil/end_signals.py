"""Signals and errors that end a search, a map or an experiment over a pool, and what is on disk then."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from etude.errors import EtudeError, Interrupted


class EndedBySignal(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled like Ctrl-C: the harness stops what it has started."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise `EndedBySignal` within the block."""

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


@contextmanager
def naming_results(on_disk: Callable[[EtudeError | None], str]) -> Iterator[None]:
    """Whatever ends what is done in here says what is on disk, and how to resume it.

    on_disk: that clause, by the error; by None where a signal came. Empty: nothing is said.

    Raises:
        Interrupted: a signal came; EtudeError: as it was raised, with that clause.
    """
    try:
        yield
    except KeyboardInterrupt as ended:
        number = ended.number if isinstance(ended, EndedBySignal) else signal.SIGINT
        raise Interrupted(number, f"ended by {signal.Signals(number).name}; {on_disk(None)}") from None
    except EtudeError as error:
        if clause := on_disk(error):
            error.args = (f"{error}; {clause}",)
        raise
