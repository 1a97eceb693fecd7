"""Stacks of both tests for other programs: speedscope's JSON, and the text of `perf script`.

Source: https://www.speedscope.app/file-format-schema.json; perf-script(1).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from etude.errors import UsageError
from etude.escaping import escaped
from etude.version import __version__
from etude.why.causes import UNKNOWN, Frame
from etude.why.stacks import MeanStack

SAMPLES = 2000
"""Samples of a test in the text of `perf script`."""
EVENT = "cpu-clock"
_NS = 1e-9

Exporter = Callable[[Sequence[MeanStack], tuple[str, str]], str]


def exporter_of(file: str) -> Exporter:
    """The function that makes a file of this name. Raises UsageError: its ending is of no format."""
    for ending, function in FORMATS.items():
        if file.endswith(ending):
            return function
    raise UsageError(f"{file}: expected a name that ends in {' or '.join(FORMATS)}")


def speedscope(stacks: Sequence[MeanStack], tests: tuple[str, str]) -> str:
    """A profile of each test: its stacks, weighted by their mean time."""
    frames: dict[Frame, int] = {}
    profiles = [_profile(stacks, name, side, frames) for side, name in enumerate(tests)]
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": f"{tests[0]}, {tests[1]}",
        "exporter": f"etude {__version__}",
        "activeProfileIndex": 1,
        "shared": {"frames": [{"name": f.symbol, **({"file": f.place} if f.place else {})} for f in frames]},
        "profiles": profiles,
    }
    return json.dumps(document) + "\n"


def _profile(
    stacks: Sequence[MeanStack], name: str, side: int, frames: dict[Frame, int]
) -> Mapping[str, Any]:
    found = [((Frame(s.process, ""), *s.frames), s.times_s[side]) for s in stacks if s.times_s[side] > 0.0]
    weights = [seconds for _, seconds in found]
    return {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames.setdefault(f, len(frames)) for f in stack] for stack, _ in found],
        "weights": weights,
    }


def perf_script(stacks: Sequence[MeanStack], tests: tuple[str, str], count: int = SAMPLES) -> str:
    """That many samples of each test, shared out among its stacks by their mean time. The process's name is that of
    the test and its own."""
    lines = [f"# {count} samples of each test, shared out by the time of each stack; etude {__version__}", ""]
    for side, name in enumerate(tests):
        lines += _samples(stacks, side, name, count)
    return "\n".join(lines) + "\n"


def _samples(stacks: Sequence[MeanStack], side: int, name: str, count: int) -> Iterator[str]:
    whole_s = sum(s.times_s[side] for s in stacks)
    passed_s, made = 0.0, 0
    for stack in stacks:
        passed_s += stack.times_s[side]
        until = round(count * passed_s / whole_s) if whole_s else 0
        process = "_".join(f"{name}:{stack.process}".split())
        text = [f"\t{16:x} {_line(f.symbol)} ({_line(f.place) or UNKNOWN})" for f in reversed(stack.frames)]
        for number in range(made, until):
            at_ns = round(number * whole_s / count / _NS)
            period = round(whole_s / count / _NS)
            at = f"{at_ns // 10**9}.{at_ns % 10**9:09}"
            yield f"{_line(process)} {side + 1}/{side + 1} {at}: {period} {EVENT}: "
            yield from text
            yield ""
        made = until


def _line(text: str) -> str:
    """A text in one line without blanks at its ends."""
    return escaped(text, lines=False).strip()


FORMATS: Mapping[str, Exporter] = {".speedscope.json": speedscope, ".perf.txt": perf_script}
"""Functions by the ending of the file's name."""
