"""Probe `interrupts`: interrupts and context switches of the whole machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from etude.machine import tree
from etude.probes.probe import Context, CounterProbe, ProbeBlock, Reading, growth, missing, value
from etude.results.model import MetricValue

MAX_BYTES = 64 << 20
"""Maximum size: /proc/interrupts has a column for each CPU, some MB on large machines."""

State = tuple[dict[str, int], dict[str, tuple[int]], dict[str, str]]


class Interrupts(CounterProbe[State]):
    """Interrupts served, context switches, and a block of interrupts by source, most frequent first."""

    name = "interrupts"
    gives: ClassVar[Mapping[str, str]] = {"machine_interrupts": "1", "machine_switches": "1"}

    def unavailable(self) -> str | None:
        return None if self._read()[0] else "/proc/stat cannot be read"

    def end(self, state: State, context: Context) -> Reading:
        totals, counts, meanings = self._read()
        metrics = {
            "machine_interrupts": _difference(state[0], totals, "intr"),
            "machine_switches": _difference(state[0], totals, "ctxt"),
        }
        grown = sorted(growth(state[1], counts).items(), key=lambda item: -item[1][0])
        lines = tuple(
            f"{name} = {by} ({meanings[name]})" if meanings[name] else f"{name} = {by}"
            for name, (by,) in grown
        )
        return Reading(metrics, (ProbeBlock("interrupts", lines),) if lines else ())

    def _read(self) -> State:
        totals = parse_stat(tree.read_text(self._root, "proc/stat", MAX_BYTES) or "")
        table = tree.read_text(self._root, "proc/interrupts", MAX_BYTES) or ""
        return totals, *parse_interrupts(table)


def parse_stat(text: str) -> dict[str, int]:
    """`intr` (all interrupts since boot) and `ctxt` (context switches) of /proc/stat."""
    words = (line.split(None, 2) for line in text.splitlines() if line.startswith(("intr ", "ctxt ")))
    return {
        pair[0]: int(pair[1]) for pair in words if len(pair) > 1 and pair[1].isascii() and pair[1].isdecimal()
    }


def parse_interrupts(text: str) -> tuple[dict[str, tuple[int]], dict[str, str]]:
    """Counts over all CPUs and descriptions by name, from /proc/interrupts."""
    header, *lines = text.splitlines() or [""]
    cpus = len(header.split())
    counts: dict[str, tuple[int]] = {}
    meanings: dict[str, str] = {}
    for line in lines:
        name, colon, rest = line.partition(":")
        if not colon:
            continue
        numbers: list[int] = []
        words = rest.split()
        while words and len(numbers) < cpus and words[0].isascii() and words[0].isdecimal():
            numbers.append(int(words.pop(0)))
        counts[name.strip()] = (sum(numbers),)
        meanings[name.strip()] = " ".join(words)
    return counts, meanings


def _difference(before: dict[str, int], after: dict[str, int], name: str) -> MetricValue:
    if name in before and name in after:
        return value(after[name] - before[name], "1")
    return missing("1", f"no {name} in /proc/stat")
