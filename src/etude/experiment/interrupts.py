"""Signals as something to look at between steps, instead of exceptions in the middle of one."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SignalWatch:
    """Within `with`, SIGINT, SIGTERM and SIGHUP are only counted, and make `fd` readable.

    `signal` is the first that came. One ends the measuring; clean-up goes on until a second.

    In a thread other than the main one nothing is watched, as Python allows it only there.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self.count = 0
        self.fd: int | None = None
        self._former: dict[int, object] = {}

    def __enter__(self) -> SignalWatch:
        if threading.current_thread() is threading.main_thread():
            self.fd, self._write = os.pipe()
            os.set_blocking(self._write, False)
            self._former = {number: signal.signal(number, self._note) for number in WATCHED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self.fd is not None:
            os.close(self.fd)
            os.close(self._write)
            self.fd = None

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signal = self.signal or number
        self.count += 1
        with suppress(BlockingIOError):  # full of signals already
            os.write(self._write, b"\0")
