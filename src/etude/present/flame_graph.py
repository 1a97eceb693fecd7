"""A differential flame graph: drawn by the engine, coloured by the difference of each function with its callees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from etude.errors import MachineRefuses
from etude.escaping import escaped
from etude.osutil.commands import run_to_end
from etude.present.sentences.why import frame_text
from etude.program import engine_path
from etude.why.stacks import MeanStack

NEUTRAL, LONGER, SHORTER = (228, 228, 232), (240, 100, 80), (90, 150, 230)
"""Colours of functions that take as long, longer and less time in the second test; black text is read on each."""
_NS = 1e-9
_SCRIPT = re.compile(r"<script\b[^>]*>(.*?)</script>", re.DOTALL)
_FRAME = re.compile(
    r"<title>(?P<name>[^<]*) \([^()<]*\)</title>(?P<rect><rect [^>]*)fill=\"[^\"]*\""
    r"(?P<rest> fg:x=\"(?P<from>\d+)\" fg:w=\"(?P<width>\d+)\"/>)"
)


@dataclass(frozen=True)
class FlameGraph:
    """A drawing and the script that zooms and searches in it."""

    svg: str
    script: str


def flame_graph(stacks: Sequence[MeanStack]) -> FlameGraph:
    """The flame graph of both tests; a width is the sum of both times, so that what one test lacks is there too.

    Raises:
        MachineRefuses: the engine cannot be run.
    """
    rows = sorted((folded(s), round(s.times_s[0] / _NS), round(s.times_s[1] / _NS)) for s in stacks)
    lines = [f"{';'.join(names)} {a + b} {a + b}" for names, a, b in rows if a + b]
    drawn = _drawn("\n".join(lines))
    script = "".join(re.findall(r"<!\[CDATA\[(.*?)\]\]>", "".join(_SCRIPT.findall(drawn)), re.DOTALL))
    svg = _SCRIPT.sub("", drawn[drawn.index("<svg") :]).replace(' onload="init(evt)"', "", 1)
    return FlameGraph(_coloured(svg, rows), script)


def folded(stack: MeanStack) -> tuple[str, ...]:
    """Names from the process to the innermost function, none of which can be taken for two, or for a comment."""
    names = (stack.process.lstrip("# "), *(frame.symbol for frame in stack.frames))
    return tuple(escaped(n, lines=False).replace(";", ":").strip() or "[unnamed]" for n in names)


def _drawn(text: str) -> str:
    program = engine_path()
    try:
        done = run_to_end([program, "flame-graph"], given=text.encode())
    except OSError as error:
        raise MachineRefuses(f"{program}: cannot be run: {error.strerror}; reinstall Étude") from None
    if done.status:
        raise MachineRefuses(f"{program}: cannot draw the flame graph: {done.why}; reinstall Étude")
    return done.text


def _coloured(svg: str, rows: Sequence[tuple[tuple[str, ...], int, int]]) -> str:
    """The drawing with times and a colour for each function: it spans the stacks between its ends. (The library itself
    colours by the difference of the last function of a stack alone.)"""
    ends = [0, *accumulate(a + b for _, a, b in rows)]
    sides = ([a for _, a, _ in rows], [b for _, _, b in rows])
    sums = [dict(zip(ends, [0, *accumulate(side)], strict=True)) for side in sides]

    def times(found: re.Match[str]) -> tuple[float, float]:
        first = int(found["from"])
        last = first + int(found["width"])
        a, b = ((side[last] - side[first]) * _NS for side in sums)
        return a, b

    largest = max((abs(b - a) for a, b in map(times, _FRAME.finditer(svg))), default=0.0) or 1.0

    def told(found: re.Match[str]) -> str:
        a, b = times(found)
        title = f"<title>{found['name']} ({frame_text(a, b)})</title>"
        return f'{title}{found["rect"]}fill="{_colour((b - a) / largest)}"{found["rest"]}'

    return _FRAME.sub(told, svg)


def _colour(share: float) -> str:
    end = LONGER if share > 0 else SHORTER
    parts = (round(n + (e - n) * min(1.0, abs(share)) ** 0.5) for n, e in zip(NEUTRAL, end, strict=True))
    return f"rgb({','.join(map(str, parts))})"
