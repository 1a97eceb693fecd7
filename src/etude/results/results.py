"""A stored experiment: its document, its sessions, and its measurements by test."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.results.model import Measurement
from etude.units.parsing import quantity

if TYPE_CHECKING:
    import polars


FORMAT, VERSION = "etude-experiment", 1


def machine_member(experiment: Mapping[str, Any] | None, *path: str) -> Any:
    """A member of the machine's snapshot before the first session; None if it is missing."""
    found: Any = experiment or {}
    for key in ("machine", "before", *path):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


@dataclass(frozen=True, repr=False)
class Results:
    """One stored experiment."""

    directory: Path
    experiment: Mapping[str, Any]
    measurements: Mapping[str, tuple[Measurement, ...]]
    """Measurements by test, in the order in which they were made."""
    torn: tuple[str, ...]
    """Files with a torn last line; that line was dropped."""
    repeated: Mapping[str, int] = field(default_factory=dict)
    """Files with repeated lines, and their number; they were dropped."""

    def __repr__(self) -> str:
        count = sum(map(len, self.measurements.values()))
        return f"<Results in {self.directory}: {', '.join(self.names())}; {count} measurements>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{sum(m.kept for m in self.measurements.get(name, ()))}</td></tr>"
            for name in self.names()
        )
        head = "<tr><th>test</th><th>measurements</th></tr>"
        return f"<table><caption>{escape(str(self.directory))}</caption>{head}{rows}</table>"

    def role(self, test: str) -> str:
        """`test`, `again` (A/A run of the baseline) or `shell`."""
        return str(next(t["role"] for t in self.experiment["tests"] if t["name"] == test))

    def names(self, role: str = "test") -> tuple[str, ...]:
        """The tests of one role, in the order in which they were named."""
        return names_of(self.experiment, role)

    def frame(self) -> polars.DataFrame:
        """One row per measurement; one column per member, parameter and metric (values only; units in `experiment`).

        A parameter that is always a size, such as `16KiB`, has a second column in bytes: `NAME_bytes`. A parameter
        with the name of a member has the column `NAME (parameter)`, a metric with the name of either `NAME (metric)`.
        """
        import polars

        parameters = _parameters(self.experiment["tests"])
        taken = MEMBERS.union(*parameters.values())
        rows = [
            _flat(m, parameters[name], taken) for name in self.measurements for m in self.measurements[name]
        ]
        metrics = {metric for found in self.measurements.values() for m in found for metric in m.metrics}
        found = polars.DataFrame(rows, infer_schema_length=None)
        empty = [name for name, kind in found.schema.items() if kind == polars.Null and name in metrics]
        return found.cast(dict.fromkeys(empty, polars.Float64))


def names_of(experiment: Mapping[str, Any], role: str = "test") -> tuple[str, ...]:
    """The tests of one role of an experiment, in the order in which they were named."""
    return tuple(test["name"] for test in experiment["tests"] if test["role"] == role)


def _parameters(tests: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    known = {test["name"]: dict(test.get("parameters") or {}) for test in tests}
    for name in dict.fromkeys(name for found in known.values() for name in found):
        sizes = {test: _bytes(found[name]) for test, found in known.items() if name in found}
        if None not in sizes.values():
            for test, size in sizes.items():
                known[test][f"{name}_bytes"] = size
    return known


def _bytes(text: str) -> float | None:
    value, base = quantity(text) or (None, None)
    return value if base == "B" else None


def _flat(m: Measurement, parameters: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    row = {f"{name} (parameter)" if name in MEMBERS else name: text for name, text in parameters.items()}
    row |= {name: getattr(m, name) for name in _PLAIN} | {"command": list(m.command)}
    for name, value in m.metrics.items():
        row[f"{name} (metric)" if name in taken else name] = None if value[0] is None else float(value[0])
    return row


_NO_COLUMNS = {"command", "metrics", *Measurement._field_defaults} - {"offset_ns", "offset_error_ns"}


_PLAIN = tuple(name for name in Measurement._fields if name not in _NO_COLUMNS)
MEMBERS = frozenset((*_PLAIN, "command"))
"""Members of a measurement that are columns."""


_RESTARTING = "restarting"
"""End of a session of older results that restarted the machine; followed by ` into ENTRY`."""


def restarted_into(sitting: Mapping[str, Any]) -> str | None:
    """Boot loader entry that a session restarted the machine into at its end, empty for the default one; None if it
    ended otherwise."""
    if "restarts_into" in sitting:
        entry = sitting["restarts_into"]
        return entry if isinstance(entry, str) else None
    how = sitting.get("how_ended")
    if not isinstance(how, str) or not how.startswith(_RESTARTING):
        return None
    return how.removeprefix(_RESTARTING).removeprefix(" into ")


def session_groups(sittings: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Session group of each session of experiment.json: the number of its first session.

    A block across a restart by the experiment is complete; one across an interruption is not.
    """
    found: dict[int, int] = {}
    before: Mapping[str, Any] = {}
    for sitting in sittings:
        number = sitting["sitting"]
        goes_on = restarted_into(before) is not None
        found[number] = found[before["sitting"]] if goes_on else number
        before = sitting
    return found
