"""OpenMetrics 1.0 text: a gauge a metric, labelled with test, machine, parameters and statistic, at the run's time.

By the specification a unit is the end of its family's name; samples of one family, and in it of one set of labels,
stand together in the order of time; the text ends with `# EOF`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from etude.export.document import Document, Exported, Figures, Point, Run, identifier, omit_point

_UNITS = {
    "s": "seconds",
    "B": "bytes",
    "B/s": "bytes_per_second",
    "1/s": "per_second",
    "%": "percent",
    "1": "",
}
_COUNT = ("etude_trials", "")
Labels = tuple[tuple[str, str], ...]


def write(document: Document) -> Exported:
    """A sample for each figure that is known; commit, branch and source stand in a family of their own."""
    families: dict[tuple[str, str], dict[Labels, dict[float | None, float]]] = {}
    left_out = []
    for point in document.points:
        if point.figures is None:
            left_out.append(omit_point(point))
            continue
        for statistic, value in _statistics(point.figures):
            family = families.setdefault(_COUNT if statistic == "count" else _named(point), {})
            samples = family.setdefault((*_labels(point), ("statistic", statistic)), {})
            if _time(point.run) in samples:
                left_out.append(omit_point(point, f"{point.run.source} began when another result did"))
            else:
                samples[_time(point.run)] = value
    lines = [line for (name, unit), family in families.items() for line in _family(name, unit, family)]
    return Exported("\n".join([*lines, *_runs(document.runs), "# EOF\n"]), tuple(left_out))


def _named(point: Point) -> tuple[str, str]:
    unit = _UNITS.get(point.unit, identifier(point.unit).lower().strip("_"))
    name = f"etude_{identifier(point.metric).strip('_').lower()}"
    return (name if not unit or name.endswith(f"_{unit}") else f"{name}_{unit}"), unit


def _statistics(figures: Figures) -> Iterator[tuple[str, float]]:
    for field in fields(figures):
        value = getattr(figures, field.name)
        if value is not None and field.name != "which":
            yield field.name, float(value)


def _labels(point: Point) -> Labels:
    """The metric's own name is one, since that of the family is narrower."""
    machine = point.run.machine.name if point.run.machine else ""
    named = {"test": point.test, "metric": point.metric, "kind": point.kind, "machine": machine}
    taken = {*named, "statistic"}
    for name, value in point.parameters:
        label = f"parameter_{identifier(name).strip('_')}"
        while label in taken:
            label += "_"
        taken.add(label)
        named[label] = value
    return tuple(named.items())


def _time(run: Run) -> float | None:
    return run.measured.timestamp() if run.measured else None


def _family(name: str, unit: str, family: dict[Labels, dict[float | None, float]]) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    for labels, samples in family.items():
        for time, value in sorted(samples.items(), key=lambda sample: sample[0] or 0.0):
            yield _sample(name, labels, value, time)


def _runs(runs: tuple[Run, ...]) -> Iterator[str]:
    yield "# TYPE etude_run info"
    for run in runs:
        machine = run.machine.name if run.machine else ""
        words = {"source": run.source, "commit": run.commit, "branch": run.branch, "tags": ",".join(run.tags)}
        labels = {"machine": machine} | {name: text for name, text in words.items() if text}
        began = {"measured": run.measured.isoformat()} if run.measured else {}
        yield _sample("etude_run_info", tuple((labels | began).items()), 1, None)


def _sample(name: str, labels: Labels, value: float, time: float | None) -> str:
    inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inner}}} {value!r}" + ("" if time is None else f" {time!r}")


def _escaped(text: str) -> str:
    plain = text.encode("utf-8", "replace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", " ")
