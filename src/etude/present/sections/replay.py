"""A replay as a section: its verdict, both runs side by side, and what was not as in the original."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from etude.present.section import Block, Column, Section, Sentence, Table, number
from etude.units.formatting import counted, percent, quantity

ROWS = (
    ("run time", "run_s", "run"),
    ("reading", "read_s", "read"),
    ("writing", "write_s", "write"),
    ("all calls", "calls_s", "calls"),
)
"""Label of each time, its member, and that of its ratio (docs/howto/replay.md)."""
VERDICTS: Mapping[bool | None, str] = {
    True: "The replay was faithful.",
    False: "The replay was not faithful.",
    None: "The replay had no schedule, so it was not judged.",
}


def replay_section(measurements: Mapping[str, Any], faithful: bool | None) -> Section:
    """The section of the document that `etude replay --json` writes; `faithful`: None if it was not judged."""
    blocks: tuple[Block, ...] = (
        Sentence(VERDICTS[faithful]),
        _runs(measurements),
        *map(Sentence, _differences(measurements)),
    )
    return Section("replay", "Replay", blocks)


def _runs(measurements: Mapping[str, Any]) -> Table:
    original, ratios = measurements["original"], measurements["ratios"]
    rows = [(label, original[name], measurements[name], ratios[ratio]) for label, name, ratio in ROWS]
    return Table(
        (
            Column("", [label for label, *_ in rows]),
            Column("original", [number(_time(then), then) for _, then, _, _ in rows]),
            Column("replay", [number(_time(now), now) for _, _, now, _ in rows]),
            Column("ratio", [number("–" if r is None else f"{r:.3f}", r) for _, _, _, r in rows]),
        ),
        "replay-runs",
    )


def _differences(measurements: Mapping[str, Any]) -> Iterator[str]:
    """Grounds of the verdict: results, lateness, calls left out."""
    others, calls = measurements["mismatches"], measurements["calls"]
    yield f"{counted(calls, 'call')}, {others} of them with another result than in the original."
    if (late := measurements["lateness_s"]) is not None:
        below = f"99 % below {_time(late['p99'])}, at most {_time(late['max'])}"
        yield f"Late: median {_time(late['median'])}, {below}."
    left_out = measurements["unplayed"]
    if left_out["dropped"]:
        parts = (
            f"{percent(left_out['bytes_share'])} of the bytes, {percent(left_out['time_share'])} of the time"
        )
        yield f"Not played: {parts} in reads and writes."


def _time(seconds: float) -> str:
    return quantity(seconds, "s")
