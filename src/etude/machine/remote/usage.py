"""CPU time of named processes and kernel threads between two readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

NAME_BYTES = 15
"""Maximum length of a program's name in the kernel."""


class Process(NamedTuple):
    """One process at a moment, as docs/formats.md specifies for the request `processes`."""

    pid: int
    name: str
    began: int
    cpu_ns: int
    threads: Mapping[int, int]


def processes_of(answer: Iterable[Mapping[str, Any]]) -> list[Process]:
    """Processes in the engine's answer."""
    return [Process(p["pid"], p["name"], p["began"], p["cpu_ns"], dict(p["threads"])) for p in answer]


def used_ns(before: Sequence[Process], after: Sequence[Process]) -> int:
    """CPU time between two readings, ns. Processes that have ended are left out: their last usage is unknown.

    Exact as long as no thread of a process has ended; then in the kernel's ticks (10 ms).
    """
    former = {(process.pid, process.began): process for process in before}
    return sum(_used(former.get((process.pid, process.began)), process) for process in after)


def _used(before: Process | None, after: Process) -> int:
    if before is None:
        return max(after.cpu_ns, sum(after.threads.values()))
    if before.threads.keys() <= after.threads.keys():
        return sum(ns - before.threads.get(thread, 0) for thread, ns in after.threads.items())
    return max(0, after.cpu_ns - before.cpu_ns)


def metrics(
    host: str, names: Sequence[str], before: Sequence[Process], after: Sequence[Process]
) -> tuple[dict[str, list[Any]], list[str]]:
    """Metrics `HOST.NAME.cpu`, s, and descriptions of processes that have all ended."""
    found: dict[str, list[Any]] = {}
    gone: list[str] = []
    for name in names:
        then, now = ([p for p in processes if _is_called(p, name)] for processes in (before, after))
        metric = f"{host}.{name}.cpu"
        if then and not {(p.pid, p.began) for p in then} & {(p.pid, p.began) for p in now}:
            gone.append(f"{name} (process {then[0].pid}) on {host} has ended")
            found[metric] = [None, "s", "it has ended during the trial"]
        elif now:
            found[metric] = [used_ns(then, now) / 1e9, "s"]
        else:
            found[metric] = [None, "s", f"no process of that name on {host}"]
    return found, gone


def _is_called(process: Process, name: str) -> bool:
    return process.name == name or (
        len(name.encode()) > NAME_BYTES and process.name.encode() == name.encode()[:15]
    )
