"""Processes and threads from /proc/PID/stat, and this process: its end by a signal, and its threads."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from etude.errors import EtudeError, Interrupted

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
"""Unit of CPU times and start times in /proc."""


class Stat(NamedTuple):
    """One process, or one thread. Times are in ticks; `began` is the start time since boot, without time asleep."""

    pid: int
    name: str
    state: str
    parent: int
    flags: int
    """PF_* of the kernel."""
    user: int
    system: int
    children: int
    """CPU time of children that have been waited for."""
    threads: int
    began: int

    @property
    def ended(self) -> bool:
        """True for a zombie."""
        return self.state in "ZX"


def read_stat(pid: int | str, thread: int | None = None, root: Path | str = "/") -> Stat | None:
    """A process, or one of its threads, below any root; None if it is gone."""
    place = f"{pid}/stat" if thread is None else f"{pid}/task/{thread}/stat"
    return parse_stat(read_short(os.path.join(root, "proc", place)))


def parse_stat(line: bytes) -> Stat | None:
    """Parsed line of a stat file; None if invalid."""
    head, _, tail = line.rpartition(b")")  # the name may hold blanks and parentheses: the last one ends it
    pid, bracket, name = head.partition(b" (")
    words = tail.split()
    if not bracket or len(words) < 20:
        return None
    try:
        return Stat(
            int(pid),
            name.decode("utf-8", "replace"),
            words[0].decode("ascii", "replace"),
            int(words[1]),
            int(words[6]),
            int(words[11]),
            int(words[12]),
            int(words[13]) + int(words[14]),
            int(words[17]),
            int(words[19]),
        )
    except ValueError:
        return None


def read_short(path: str) -> bytes:
    """Contents of a file of /proc of at most 4096 B, by one read; empty if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


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


NAME = "OPENBLAS_NUM_THREADS"


def one_thread() -> None:
    """Load NumPy's and SciPy's OpenBLAS with one thread: matrices here are small, and idle threads would disturb.

    The variable is read at load time and removed afterwards, since measured commands would inherit it. A user's own
    setting stays.
    """
    if NAME in os.environ or "numpy" in sys.modules:
        return
    os.environ[NAME] = "1"
    try:
        import numpy.linalg  # noqa: F401
        import scipy.linalg  # noqa: F401  # it has an OpenBLAS of its own
    finally:
        del os.environ[NAME]
