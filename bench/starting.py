"""How soon there is something on the screen: `etude --help`, the first mean, the first interval."""

from __future__ import annotations

import os
import pty
import re
import sys
import tempfile
import time

from rows import ETUDE, Row, interleave, ratios, wall_s

MEAN, INTERVAL = re.compile(rb"mean"), re.compile("±.* %".encode())


def seen_s(pattern: re.Pattern[bytes]) -> float:
    """Seconds until a terminal shows `pattern` during `etude bench true`."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(ETUDE, [ETUDE, "bench", "-o", f"{directory}/r", "true"])
        shown, found = b"", None
        while True:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
            if found is None and pattern.search(shown):
                found = time.perf_counter() - start
        os.waitpid(pid, 0)
        os.close(terminal)
    if found is None:
        raise RuntimeError(f"{pattern.pattern!r} was never shown; the terminal saw {shown[-500:]!r}")
    return found


def starting(rounds: int) -> list[Row]:
    """Each against this interpreter doing nothing."""
    parties = {
        "python": lambda: wall_s([sys.executable, "-c", "pass"]),
        "help": lambda: wall_s([ETUDE, "--help"]),
        "mean": lambda: seen_s(MEAN),
        "interval": lambda: seen_s(INTERVAL),
    }
    found = interleave(parties, rounds)
    rows = []
    for name, what, limit in (
        ("help", "etude --help", 5),
        ("mean", "first mean on the screen of etude bench true", 15),
        ("interval", "first interval on that screen", 35),
    ):
        ratio = ratios(found[name], found["python"])
        rows.append(Row(what, "python3 -c pass", f"{ratio} ×", f"≤ {limit} ×", ratio.median <= limit))
    return rows
