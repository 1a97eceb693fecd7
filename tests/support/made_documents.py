"""Documents to export, made of any names and numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from etude.export.document import Document, Point, Run, identifier, one_line, word
from etude.export.gather import figures_of
from etude.store.entry import Machine

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from(
    ['a "b"', "a|b", "a\nb", "-8", "x-8", "naïve ☃", "a,b", "#x", "<b>", "\x00\x1b", "'", "a\\", "/k=v", "{}"]
)
METRICS = {
    "elapsed": ("s", "cost"),
    "user": ("s", "cost"),
    "system": ("s", "cost"),
    "peak_memory": ("B", "cost"),
    "tps": ("1/s", "rate"),
}
VALUES = st.floats(1e-9, 1e12, allow_nan=False, allow_infinity=False)
MACHINE = Machine("lab 1", "d1", (("architecture", "x86_64"), ("cores", "8"), ("memory", "24 GiB")))
BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)


def point(
    test: str, metric: str, values: list[float | None], run: Run | None = None, **changes: object
) -> Point:
    unit, kind = METRICS[metric]
    known = [value for value in values if value is not None]
    figures = figures_of(known, kind, confidence=0.95)
    members = {"reason": "" if figures else "not measured"} | changes
    return Point(run or RUN, test, metric, unit, kind, tuple(values), figures, **members)  # type: ignore[arg-type]


RUN = Run("results/x", MACHINE, BEGAN, "abc123", BEGAN - timedelta(hours=1), "main")


@st.composite
def documents(draw: st.DrawFn, *, gaps: bool = True, tests: int = 4) -> Document:
    """Of one run: tests whose names stay distinct in every format, each with some metrics over the same trials."""
    names = draw(
        st.lists(
            NAMES, min_size=1, max_size=tests, unique_by=lambda t: (identifier(t).lower(), word(one_line(t)))
        )
    )
    found = []
    for name in names:
        trials = draw(st.integers(0, 5))
        parameters = tuple(draw(st.dictionaries(NAMES, NAMES, max_size=2)).items())
        value = VALUES | st.none() if gaps else VALUES
        for metric in ["elapsed", *draw(st.lists(st.sampled_from([*METRICS][1:]), unique=True))]:
            values = draw(st.lists(value, min_size=trials, max_size=trials))
            found.append(point(name, metric, values, parameters=parameters))
    return Document(tuple(found), "elapsed")
