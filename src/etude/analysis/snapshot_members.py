"""Members of a machine's snapshot as dotted names and values, and which of them change by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

ALIASES = {
    "memory.swappiness": "sysctl.vm.swappiness",
    "memory.dirty_ratio": "sysctl.vm.dirty_ratio",
    "memory.dirty_background_ratio": "sysctl.vm.dirty_background_ratio",
    "kernel.aslr": "sysctl.kernel.randomize_va_space",
    "kernel.perf_event_paranoid": "sysctl.kernel.perf_event_paranoid",
    "kernel.nmi_watchdog": "sysctl.kernel.nmi_watchdog",
    "kernel.autogroup": "sysctl.kernel.sched_autogroup_enabled",
}
"""Current names of members that older snapshots have in another part."""

MOVING = re.compile(
    r"load(?:\.|$)|system\.(?:uptime_s|boot_id)$|python\.executable$"
    r"|memory\.(?:available|free|cached|dirty|swap_used)_bytes$"
    r"|.*\.(?:free_bytes|free_inodes|free_fragment_bytes)$|.*current[^.]*(?:\.|$)"
    r"|sysctl\.kernel\.perf_(?:event_max_sample_rate|cpu_time_max_percent)$"
    r"|environment\.size_bytes$|environment\.variables\.(?:_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|WINDOWID|DISPLAY"
    r"|SSH_\w+|XDG_SESSION_\w+|DBUS_\w+|TERM_SESSION_ID|INVOCATION_ID|JOURNAL_STREAM|MEMORY_PRESSURE_\w+"
    r"|SYSTEMD_EXEC_PID|PYTEST_CURRENT_TEST|WINDOW|STY|TMUX|TMUX_PANE|SLURMD?_\w+|ETUDE_(?:JOB|RUN))$"
)
"""Members that change by themselves, or with each login: load, free space, times, the clock rate right now."""

LONGEST = 60
"""Maximum number of characters of a value that are shown."""

BEFORE = 16
"""Number of common characters of two long values that are shown before their first difference."""

_FILES = ("programs", "toolchain")


def members(part: Mapping[Any, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """All members with dotted names such as `memory.total_bytes`. A program is one member."""
    for key, value in part.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping) and above in _FILES:
            yield name, file_shown(value)
        elif isinstance(value, Mapping):
            yield from members(value, name)
        elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            yield from members(dict(enumerate(value)), name)
        elif name in ALIASES:
            yield ALIASES[name], None if value is None else str(value)
        else:
            yield name, value


def changes_by_itself(name: str) -> bool:
    """True if a member changes by itself."""
    return MOVING.match(name) is not None


def file_shown(file: Mapping[str, Any]) -> str:
    """A program in one line, other for each other content: its path, package, version and the head of its digest."""
    package = " ".join(str(file[name]) for name in ("package", "version") if file.get(name))
    digest = file.get("sha256") or file.get("build_id")
    mark = str(digest)[:12] if digest else f"{file.get('bytes')} bytes"
    return f"{file.get('file') or file.get('path')} ({', '.join(filter(None, (package, mark)))})"


def value_text(value: object) -> str:
    """A value on one line, shortened; `none` for an empty one."""
    return _short(_line(value)) or "none"


def both_shown(one: object, other: object) -> tuple[str, str]:
    """Two values, each on one line; long ones begin shortly before their first difference."""
    texts = _line(one), _line(other)
    if max(map(len, texts)) > LONGEST:
        same = (a == b for a, b in zip(*texts, strict=False))
        common = sum(takewhile(bool, same)) - BEFORE
        if common > 0:
            texts = f"…{texts[0][common:]}", f"…{texts[1][common:]}"
    return _short(texts[0]) or "none", _short(texts[1]) or "none"


def _line(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(text.split())


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
