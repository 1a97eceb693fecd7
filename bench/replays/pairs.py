"""Run, read and write time: in each round an original, the same again, and the replay of a recording of its own."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replays.programs import Workload
from replays.steps import Place, Said, cold_by, original, whole_way
from rows import Row, Spread, interleave, ratios, spread

STATES = ("warm", "cold")
RUN_TIME = {"warm": 0.03, "cold": 0.15}
"""How far a replay's run time may be from the original's."""
IO_TIME = {"warm": 0.10, "cold": 0.20}
JUDGED_S = 1e-3
"""Reads or writes that take less in total are shown, not judged: some interrupts are a share of that."""


@dataclass(frozen=True)
class Pairs:
    """Seconds, aligned by round."""

    original: Sequence[float]
    again: Sequence[float]
    """The original a second time: how far apart two runs are that differ in nothing."""
    replays: Sequence[Said]

    @property
    def replay(self) -> list[float]:
        """From the first call to the last."""
        return [said["run_s"] for said in self.replays]

    @property
    def recording(self) -> list[float]:
        """That each replay was made of."""
        return [said["original"]["run_s"] for said in self.replays]


def pairs(workload: Workload, place: Place, rounds: int, cold: bool) -> Pairs:
    """Original, original again, and replay, in random order each round."""
    replays: list[Said] = []

    def replay() -> float:
        replays.append(whole_way(workload, place, cold=cold))
        return float(replays[-1]["run_s"])

    parties: dict[str, Callable[[], float]] = {
        "original": lambda: original(workload, place, cold=cold),
        "again": lambda: original(workload, place, cold=cold),
        "replay": replay,
    }
    found = interleave(parties, rounds)
    return Pairs(found["original"], found["again"], replays)


def pair_rows(what: str, state: str, found: Pairs) -> list[Row]:
    """All that is said of a program in a state of the cache."""
    return [run_row(what, state, found), *io_rows(what, state, found)]


def run_row(what: str, state: str, found: Pairs) -> Row:
    """Judged by how far the median is from 1; warm it may be as far as two originals are apart in the same rounds."""
    ratio = ratios(found.replay, found.original)
    allowed = RUN_TIME[state]
    if state == "warm":
        allowed = max(allowed, apart(found))
    about = f"{state}, {cold_by()}" if state == "cold" else state
    floor = f"again / original {fine(ratios(found.again, found.original))}"
    own = f"replay / its own recording {ratios(found.replay, found.recording).median:.4f}"
    base = f"original, {spread(found.original).median:.3g} s; {floor}; {own}"
    reach = (f"within {100 * allowed:.2g} %", abs(ratio.median - 1) <= allowed)
    return Row(f"run time, replay / original: {what}; {about}", base, fine(ratio), *reach)


def apart(found: Pairs) -> float:
    """How far two originals of a round are apart, by the median."""
    pairs = zip(found.again, found.original, strict=True)
    return statistics.median(abs(again / once - 1) for again, once in pairs)


def fine(ratio: Spread) -> str:
    """A ratio near 1."""
    return f"{ratio.median:.4f} (quartiles {ratio.low:.4f}–{ratio.high:.4f})"


def io_rows(what: str, state: str, found: Pairs) -> list[Row]:
    """Time within calls that read, and that write: each replay's beside that of the recording that it was made of."""
    rows = []
    for name in ("read", "write"):
        values = [said["ratios"][name] for said in found.replays if said["ratios"][name] is not None]
        if len(values) > 1:
            recorded_s = statistics.median(said["original"][f"{name}_s"] for said in found.replays)
            rows.append(io_row(f"{name} time, replay / original: {what}", state, values, recorded_s))
    return rows


def io_row(what: str, state: str, values: Sequence[float], recorded_s: float) -> Row:
    """Judged by the median, where there is enough to be judged."""
    ratio, allowed = spread(values), IO_TIME[state]
    judged = recorded_s >= JUDGED_S
    reached = abs(ratio.median - 1) <= allowed if judged else None
    reach = f"within {100 * allowed:g} %" if judged else f"– (less than {1e3 * JUDGED_S:g} ms in total)"
    base = f"its own recording, {1e3 * recorded_s:.3g} ms"
    return Row(f"{what}; {state}", base, fine(ratio), reach, reached)
