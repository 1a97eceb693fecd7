"""The log of `etude --log FILE`: actions and messages with time stamps, for later diagnosis.

`note` is called at each event. It costs nothing without a log: the standard logging module, which writes it, is loaded
by `begin`. Secrets are masked as in commands (`masking.py`), their values and all that `--mask` names.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from etude.errors import MachineRefuses
from etude.escaping import escaped

if TYPE_CHECKING:
    import logging

    from etude.masking import Mask

_FORM = "%(asctime)s.%(msecs)03dZ %(process)d %(name)s: %(message)s"
_sinks: list[Callable[[str, str], None]] = []
_masks: list[Mask] = []


def note(part: str, text: str) -> None:
    """Write a line to the log, if there is one: `part` names its subsystem, such as `pool`."""
    for sink in _sinks:
        for mask in _masks:
            text = mask.text(text)
        sink(part, text)


def mask_by(mask: Mask) -> None:
    """Apply this mask too from now on."""
    if _sinks:
        _masks.append(mask)


def begin(path: str) -> None:
    """Append to a file from now on.

    Raises:
        MachineRefuses: it cannot be opened.
    """
    import logging

    from etude.masking import Mask

    try:
        handler = _handler(path)
    except OSError as error:
        raise MachineRefuses(
            f"--log {path}: cannot be written: {error.strerror}; name another file"
        ) from None
    root = logging.getLogger("etude")
    root.setLevel(logging.INFO)
    root.propagate = False
    root.addHandler(handler)
    _masks[:] = [Mask()]
    _sinks[:] = [lambda part, text: logging.getLogger(f"etude.{part}").info("%s", text)]


def end() -> None:
    """Close the log."""
    import logging

    root = logging.getLogger("etude")
    for handler in list(root.handlers):
        root.removeHandler(handler)
        with suppress(OSError):  # reported when it was written
            handler.close()
    _sinks.clear()
    _masks.clear()


def _handler(path: str) -> logging.Handler:
    import logging

    class Lines(logging.FileHandler):
        """Writes each record as one line; a write error is reported once, and measuring continues."""

        complained = False

        def _open(self) -> io.TextIOWrapper:
            from etude.osutil.trust import APPEND, open_user_file  # what help does not wait for

            opened = open_user_file(self.baseFilename, APPEND)
            return open(opened, "a", encoding=self.encoding, errors=self.errors)

        def format(self, record: logging.LogRecord) -> str:
            return escaped(super().format(record), lines=False)

        def handleError(self, record: logging.LogRecord) -> None:
            if not self.complained:
                self.complained = True
                error = sys.exc_info()[1]
                why = error.strerror if isinstance(error, OSError) else error
                os.write(2, f"etude: --log {path}: cannot be written: {why}; it is not whole\n".encode())

    handler = Lines(path, encoding="utf-8", errors="backslashreplace")
    formatter = logging.Formatter(_FORM, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    return handler
