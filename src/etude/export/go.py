"""Go's benchmark text (design document 14313): configuration, units, then a line for each trial; benchstat reads it."""

from __future__ import annotations

from collections.abc import Iterator

from etude.export.document import (
    Document,
    Exported,
    NotExported,
    Point,
    Run,
    by_test,
    omit_point,
    one_line,
    word,
)

_BETTER = {"cost": "lower", "rate": "higher"}
_UNITS = {"s": "sec/op", "B": "B/op"}
_KEYS = ("commit", "branch", "tags", "machine", "cpu", "kernel")


def write(document: Document) -> Exported:
    """`elapsed` is `sec/op`; any other metric is its name with the unit behind a dash."""
    lines, left_out, told = list[str](), list[NotExported](), set[str]()
    run: Run | None = None
    for group in by_test(document.points):
        if group[0].run != run:
            run = group[0].run
            lines += _configuration(run, written=bool(lines))
        for point in group:
            better = _BETTER.get(point.kind)
            if better is not None and _unit(point) not in told:
                told.add(_unit(point))
                lines.append(f"Unit {_unit(point)} better={better}")
        left_out += [omit_point(point) for point in group if not point.known]
        lines += _trials(group)
    return Exported("".join(f"{line}\n" for line in lines), tuple(left_out))


def _configuration(run: Run, written: bool) -> Iterator[str]:
    """`key: value`; a key without a value takes back what an earlier run said."""
    facts = dict(run.machine.facts) if run.machine else {}
    values = {
        "commit": run.commit,
        "branch": run.branch,
        "tags": ",".join(run.tags),
        "machine": run.machine and run.machine.name,
        "cpu": facts.get("processor"),
        "kernel": facts.get("kernel"),
    }
    for key in _KEYS:
        value = values[key]
        if value or written:
            yield f"{key}: {one_line(value)}" if value else f"{key}:"


def _trials(group: tuple[Point, ...]) -> Iterator[str]:
    """A line for each trial that has a value: all metrics side by side, as far as each goes."""
    keys = "".join(f"/{word(name)}={word(value)}" for name, value in group[0].parameters)
    for trial in range(max(len(point.values) for point in group)):
        row = [(point.values[trial], _unit(point)) for point in group if trial < len(point.values)]
        pairs = [f"{value!r} {unit}" for value, unit in row if value is not None]
        if pairs:
            yield f"Benchmark{word(group[0].test)}{keys} 1 {' '.join(pairs)}"


def _unit(point: Point) -> str:
    if point.metric == "elapsed" and point.unit == "s":
        return "sec/op"
    return f"{word(point.metric)}-{_UNITS.get(point.unit, word(point.unit))}"
