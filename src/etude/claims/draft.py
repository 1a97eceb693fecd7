"""Claims made from stored results: experiments that repeat them, and bounds that their intervals support."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.analysis.comparisons import compare_tests
from etude.analysis.load_subject import read_ours
from etude.analysis.subject import Subject
from etude.analysis.verdict_options import VerdictOptions
from etude.claims.bound import Bound, parse_bound
from etude.claims.claims_file import FEW, MARGIN, MOST_TRIALS
from etude.errors import InputError
from etude.experiment.plan import Plan, from_document
from etude.experiment.test import Test
from etude.peak.search_store import SearchStore, stored_answer
from etude.results.reader import read_experiment
from etude.results.results import machine_member
from etude.surface.map_store import MapStore, surface_result_of
from etude.surface.summary import optimum

_SIMULATE = "simulate "


@dataclass
class Draft:
    """Content of a new claims file."""

    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Their tables."""
    claims: dict[str, tuple[str, Bound]] = field(default_factory=dict)
    """Experiment and bound by id."""
    comments: list[str] = field(default_factory=list)
    """Lines before the first table."""
    files: dict[str, str] = field(default_factory=dict)
    """Texts of harnesses and specifications, written beside it."""

    def claim(self, name: str, experiment: str, bound: str) -> None:
        """Add a claim, with an id of its own."""
        self.claims[_free(name, self.claims)] = (experiment, parse_bound(bound))


def draft(places: Sequence[Path]) -> Draft:
    """Claims that results support.

    Raises:
        InputError: a directory holds none of an experiment, or nothing to claim.
    """
    made = Draft()
    for place in places:
        document = read_experiment(place)
        kind = document["plan"].get("kind")
        if kind not in _ADDS:
            raise InputError(
                f"{place}: holds results of kind {kind}: expected those of bench, run, peak or surface"
            )
        name = _free(str(document.get("name") or place.resolve().name), made.experiments)
        before = len(made.claims)
        _ADDS[kind](made, name, place, document)
        if len(made.claims) == before:
            raise InputError(
                f"{place}: has nothing to claim: expected a comparison, a peak, a best, or EXPECT lines"
            )
    return made


def _of_commands(made: Draft, name: str, place: Path, document: Mapping[str, Any]) -> None:
    plan = from_document(document["plan"], str(place / "experiment.json"))
    tests = [test for test in plan.tests if test.role == "test"]
    first = tests[0]
    if lost := sorted({key for test in tests for key in _unstated(test, first)} | _of_plan(plan)):
        raise InputError(
            f"{place}: was measured with {', '.join(lost)}, which a claims file cannot state: measure without, or by a "
            "script"
        )
    table: dict[str, Any] = {"commands": {test.name: _line(test, plan.shell) for test in tests}}
    options: dict[str, Any] = {
        "shell": plan.shell,
        "primary": plan.primary if plan.primary != "elapsed" else None,
    }
    options |= {key: getattr(first, key) for key in ("setup", "prepare", "conclude", "cleanup")}
    options |= {"cool": first.cool if first.cool != "none" else None, "data": list(first.data)}
    table |= {key: value for key, value in options.items() if value}
    if first.metrics:
        table["metrics"] = {m.name: {"regex": m.regex, "unit": m.unit, "join": m.join} for m in first.metrics}
    if first.environment:
        table["variables"] = {key: value for key, value in first.environment.items() if value is not None}
    subject = read_ours(place)
    table["trials"] = max(MOST_TRIALS, *(int(series.kept.sum()) for series in subject.tests))
    made.experiments[name] = table
    where = machine_member(document, "directory", "path")
    made.comments.append(
        f"# {name}: its commands were measured in {where}; here they run in the directory of this file."
    )
    _add_comparisons(made, name, subject)


def _unstated(test: Test, first: Test) -> Iterator[str]:
    """Options of a test that a claims file has no key for, or has one for all tests."""
    usual = Test(test.name, test.command)
    for key in ("workers", "cpus", "inner", "stdin", "groups"):
        if getattr(test, key) != getattr(usual, key):
            yield {"stdin": "--input", "cpus": "--cpu"}.get(key, f"--{key}")
    for key in ("setup", "prepare", "conclude", "cleanup", "cool", "data", "metrics", "environment"):
        if getattr(test, key) != getattr(first, key):
            yield f"another {key} for each command"


def _of_plan(plan: Plan) -> set[str]:
    return {"--ignore-failure"} if plan.ignore_failure else set()


def _line(test: Test, shell: str | None) -> str:
    return test.command[-1] if shell is not None else shlex.join(test.command)


def _add_comparisons(made: Draft, experiment: str, subject: Subject, least: int = 2) -> None:
    metric = subject.asked.primary
    for each in compare_tests(subject, metric, VerdictOptions())[0]:
        if (
            (each.trials or each.ratio.count) >= least
            and each.ratio.low > 0.0
            and math.isfinite(each.ratio.high)
        ):
            bound = _ratio_bound(metric, each.base, each.other, each.ratio.low, each.ratio.high)
            made.claim(f"{each.other}-{each.base}", experiment, bound)


def _ratio_bound(metric: str, base: str, other: str, low: float, high: float) -> str:
    """A bound beyond the interval by the margin, and rounded away from it."""
    most, least = _up(high * (1.0 + 2.0 * MARGIN)), -_up(-low / (1.0 + 2.0 * MARGIN))
    if most < 1.0 or least > 1.0:
        side = f"<= {most:g}" if most < 1.0 else f">= {least:g}"
        return f"ratio({metric}, {_quoted(other)}/{_quoted(base)}) {side}"
    within = math.ceil(100.0 * (max(high, 1.0 / low) * (1.0 + 2.0 * MARGIN) - 1.0))
    if within < 100:
        return f"equivalent({metric}, {_quoted(base)}, {_quoted(other)}, {within} %)"
    return f"ratio({metric}, {_quoted(other)}/{_quoted(base)}) <= {most:g}"


def _up(value: float) -> float:
    """The value rounded upwards to three significant digits."""
    if value == 0.0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return float(f"{math.ceil(value / step - 1e-9) * step:.6g}")


def _of_script(made: Draft, name: str, place: Path, document: Mapping[str, Any]) -> None:
    plan = document["plan"]
    if not isinstance(plan.get("script"), str):
        raise InputError(
            f"{place / 'experiment.json'}: plan.script is missing: expected the path of the script"
        )
    table: dict[str, Any] = {"script": plan["script"]}
    if plan.get("assignments"):
        table["variables"] = plan["assignments"]
    made.experiments[name] = table
    for entry in document.get("tests", ()):
        if entry.get("expect"):
            made.claim(f"{entry['name']}-expected", name, f"expect({_quoted(str(entry['name']))})")
    _add_comparisons(made, name, read_ours(place), FEW)


def _of_peak(made: Draft, name: str, place: Path, document: Mapping[str, Any]) -> None:
    kept = SearchStore(place)
    sought = kept.sought
    if sought.harness.startswith(_SIMULATE):
        made.experiments[name] = {"simulate": sought.harness.removeprefix(_SIMULATE)}
    else:
        made.files[f"{name}.harness.toml"] = sought.harness
        made.experiments[name] = {"peak": f"{name}.harness.toml"}
    if sought.factors:
        made.experiments[name]["variables"] = dict(sought.factors)
    low = stored_answer(kept).low
    if low > 0.0:
        made.claim(f"{name}-peak", name, f"peak >= {-_up(-low / (1.0 + 2.0 * MARGIN)):g}")


def _of_surface(made: Draft, name: str, place: Path, document: Mapping[str, Any]) -> None:
    kept = MapStore(place)
    if not (spec := kept.definition.spec):
        raise InputError(
            f"{place}: is a simulated map, which has no specification: expected a map of a system"
        )
    made.files[f"{name}.surface.toml"] = spec
    made.experiments[name] = {"surface": f"{name}.surface.toml"}
    best = optimum(mapped := surface_result_of(kept))
    unit = "" if mapped.unit == "1" else f" {mapped.unit}"
    if best is not None and mapped.better == "higher" and best.best.low > 0.0:
        made.claim(f"{name}-best", name, f"best >= {-_up(-best.best.low / (1.0 + 2.0 * MARGIN)):g}{unit}")
    elif best is not None and mapped.better == "lower" and math.isfinite(best.best.high):
        made.claim(f"{name}-best", name, f"best <= {_up(best.best.high * (1.0 + 2.0 * MARGIN)):g}{unit}")


_ADDS: dict[str | None, Callable[[Draft, str, Path, Mapping[str, Any]], None]] = {
    None: _of_commands,
    "script": _of_script,
    "peak": _of_peak,
    "surface": _of_surface,
}


def _quoted(name: str) -> str:
    """A test's name in a bound."""
    return name if re.fullmatch(r"[\w.-]+", name) else f'"{name}"'


def _free(name: str, taken: Mapping[str, object]) -> str:
    """An id like the name that is not taken."""
    base = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:50] or "claim"
    return next(n for i in range(1, len(taken) + 3) if (n := base if i == 1 else f"{base}-{i}") not in taken)


def as_toml(made: Draft, sentence: Callable[[Bound], str]) -> str:
    """The claims file. `sentence`: the statement of a bound in words."""
    lines = [*made.comments]
    for name, table in made.experiments.items():
        lines += [f"[experiment.{_key(name)}]", *_table(table), ""]
    for name, (experiment, bound) in made.claims.items():
        told = {"text": sentence(bound), "experiment": experiment, "hold": [bound.text]}
        lines += [f"[claim.{_key(name)}]", *_table(told), ""]
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _table(table: Mapping[str, Any]) -> Iterator[str]:
    """Lines of a table; those that hold tables come last, with dotted keys."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from (f"{_key(key)}.{_key(name)} = {_value(each)}" for name, each in value.items())
        else:
            yield f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
