"""A surface in a TOML file: response, factors, sampling plan and budget.

docs/howto/surfaces.md describes the file. Each error is one line: FILE:LINE: the problem, and what was expected.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from etude.errors import UsageError
from etude.machine.resources.resource import Resource
from etude.machine.resources.table import check_levels, resource_of
from etude.patterns import PatternError, compile_pattern
from etude.peak import LONGEST_BUDGET_S
from etude.results.model import METRICS
from etude.surface.factors import Configuration, Factor, Scale, Space, magnitude
from etude.surface.next_configuration import Plan, Rules, contradiction
from etude.toml_config import Section, document, finite, line_of
from etude.units.parsing import QuantityError

OF_RESPONSE = {
    "peak": ("peak", "policy"),
    "command": ("command", "metric", "better", "unit", "pattern", "precision", "setup"),
    "script": ("script", "test", "metric", "better", "unit"),
}
"""Keys of each kind of response."""
OF_FACTOR = ("levels", "scale", "unit")
"""Keys of a factor; all others belong to its resource."""
MOST_CONFIGURATIONS = 100_000
PRECISION = 0.05
"""Default `precision` of a command."""


@dataclass(frozen=True, slots=True)
class PeakOf:
    """Response that is a peak rate."""

    harness: str
    """HARNESS.toml, relative to the file, or MODULE:NAME."""
    policy: str = "posterior"


@dataclass(frozen=True, slots=True)
class MetricOf:
    """Response that is a metric of a command, or of a script's test."""

    metric: str
    better: Literal["higher", "lower"]
    unit: str = ""
    command: str = ""
    """Command with factors in braces."""
    script: str = ""
    """An .ap script, which gets the factors as NAME=VALUE."""
    test: str = ""
    """Test of the script; empty: its only one."""
    pattern: str = ""
    """Pattern whose first group is the metric in the command's output."""
    precision: float = PRECISION
    """Relative margin of error of the metric at which trials end."""
    setup: str = ""
    """Command before the trials of a configuration; not measured."""


@dataclass(frozen=True)
class Spec:
    """Contents of a SPEC.toml."""

    path: Path
    name: str
    text: str
    space: Space
    response: PeakOf | MetricOf
    rules: Rules
    resources: Mapping[str, Resource]
    """Resources by factor."""
    budget_s: float | None
    """Benchmarking time of all configurations."""
    cell_s: float | None
    """Benchmarking time of one configuration."""


def read_spec(path: Path) -> Spec:
    """Read the file. Raises InputError: one line with position and problem."""
    whole = document(path)
    whole.only(("name", "response", "factor", "samples", "budget"))
    factors, resources = _factors(whole.section("factor"), path.parent)
    samples, budget = whole.section("samples"), whole.section("budget")
    space = _space(factors, samples)
    budget.only(("time", "cell"))
    return Spec(
        path,
        whole.text_at("name", path.stem),
        whole.text,
        space,
        _response(whole.section("response"), factors, confined=bool(resources)),
        _rules(samples, space),
        resources,
        budget.seconds("time", most=LONGEST_BUDGET_S, zero=False),
        budget.seconds("cell", most=LONGEST_BUDGET_S, zero=False),
    )


def _response(section: Section, factors: tuple[Factor, ...], *, confined: bool) -> PeakOf | MetricOf:
    """`confined`: True if some factor is a resource, which has an effect without being named."""
    kinds = [key for key in ("peak", "command", "script") if key in section.values]
    if len(kinds) != 1:
        found = " and ".join(kinds) if kinds else "none"
        section.fail(
            kinds[-1] if kinds else None, f"[response] has {found}: expected one of peak, command, script"
        )
    (kind,) = kinds
    section.only(OF_RESPONSE[kind])
    if not section.text_at(kind).strip():
        section.fail(kind, f"[response] {kind} is {section.text_at(kind)!r}: expected a {kind}")
    if kind == "peak":
        return PeakOf(section.text_at("peak"), _policy(section))
    return _metric(section, factors, confined)


def _policy(section: Section) -> str:
    from etude.peak.policies import policy

    name = section.text_at("policy", "posterior")
    try:
        policy(name)
    except UsageError as error:
        section.fail("policy", f"[response] policy: {error}")
    return name


def _metric(section: Section, factors: tuple[Factor, ...], confined: bool) -> MetricOf:
    command, metric = section.text_at("command"), section.text_at("metric", "elapsed")
    script = section.text_at("script")
    if script and not (section.path.parent / script).is_file():
        section.fail("script", f"[response] script {script}: there is no such file")
    _pattern(section, metric)
    if command and not any(f"{{{factor.name}}}" in command for factor in factors) and not confined:
        section.fail(
            "command",
            "[response] command names no factor in braces: it would be the same in all configurations",
        )
    better = section.one_of("better", ("higher", "lower"), "lower")
    return MetricOf(
        metric,
        cast(Literal["higher", "lower"], better),
        section.text_at("unit", METRICS[metric].unit.replace("1", "") if metric in METRICS else ""),
        command,
        script,
        section.text_at("test"),
        section.text_at("pattern"),
        section.share("precision") or PRECISION,
        section.text_at("setup"),
    )


def _pattern(section: Section, metric: str) -> None:
    pattern = section.text_at("pattern")
    if "command" in section.values and not pattern and metric not in METRICS:
        known = "one of " + ", ".join(list(METRICS)[:4])
        section.fail(
            "metric",
            f"[response] metric is {metric!r}: expected {known} and others, or a pattern that finds it",
        )
    try:
        found = compile_pattern(pattern)
    except PatternError as error:
        section.fail("pattern", f"[response] pattern is no regular expression: {error}")
    if pattern and found.groups == 0:
        section.fail("pattern", "[response] pattern has no group: expected (…) around the number")


def _factors(section: Section, base: Path) -> tuple[tuple[Factor, ...], dict[str, Resource]]:
    factors, resources = [], {}
    for name in section.values:
        one = section.section(name)
        if not name.isidentifier():
            section.fail(name, f"a factor cannot be called {name!r}: expected letters, digits and _")
        factor = _factor(name, one)
        factors.append(factor)
        if "resource" in one.values:
            where = f"{one.path}:{line_of(one.text, one.name, None)}: [{one.name}]"
            resources[name] = resource_of(one.values, where, base, OF_FACTOR)
            check_levels(resources[name], [factor.text(n) for n in range(len(factor.levels))], where)
        else:
            one.only((*OF_FACTOR, "resource"))
    if not factors:
        section.fail(None, "there is no factor: expected at least one [factor.NAME] with levels")
    return tuple(factors), resources


def _factor(name: str, section: Section) -> Factor:
    levels: Any = section.values.get("levels")
    what = section.named("levels")
    if not isinstance(levels, list) or not levels:
        said = "is missing" if levels is None else f"is {levels!r}"
        section.fail("levels", f"{what} {said}: expected a list of at least one level, as [1, 2, 4]")
    numbers = all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)
    words = all(isinstance(level, str) for level in levels)
    if not numbers and not words:
        section.fail("levels", f"{what} is {levels!r}: expected numbers only, or words only")
    if words and (wrong := [level for level in levels if not level.strip() or not level.isprintable()]):
        section.fail("levels", f"{what} has {wrong[0]!r}: expected words that can be seen")
    kinds = ("linear", "log") if numbers else ("categorical", "ordered", "linear", "log")
    scale = cast(Scale, section.one_of("scale", kinds, kinds[0]))
    if numbers:
        if not all(map(finite, levels)) or (scale == "log" and min(levels) <= 0):
            section.fail(
                "levels",
                f"{what} is {levels!r}: expected {'numbers above 0' if scale == 'log' else 'finite numbers'}",
            )
        levels = sorted(float(level) for level in levels)
    elif scale in ("linear", "log"):
        levels = _sizes(section, what, levels, scale)
    factor = Factor(name, scale, tuple(levels), section.text_at("unit"))
    texts = [factor.text(level) for level in range(len(levels))]
    if twice := [text for text in texts if texts.count(text) > 1]:
        section.fail("levels", f"{what} has {twice[0]} twice")
    return factor


def _sizes(section: Section, what: str, levels: list[str], scale: Scale) -> list[str]:
    """Sizes in rising order, as written."""
    try:
        rising = sorted(levels, key=magnitude)
    except QuantityError as error:
        section.fail("levels", f"{what} on a {scale} scale: {error}")
    if same := [b for a, b in itertools.pairwise(rising) if magnitude(a) == magnitude(b)]:
        section.fail("levels", f"{what} has {same[0]} twice")
    return rising


def _space(factors: tuple[Factor, ...], samples: Section) -> Space:
    everything = Space(factors)
    if everything.size > MOST_CONFIGURATIONS:
        samples.fail(
            None,
            f"the levels make {everything.size:,} configurations: expected {MOST_CONFIGURATIONS:,} at most",
        )
    without: Any = samples.values.get("without", [])
    if not isinstance(without, list) or not all(isinstance(each, dict) for each in without):
        samples.fail(
            "without", "[samples] without: expected a list of tables, as [{ workers = 8, cpus = 1 }]"
        )
    gone = frozenset(
        configuration for each in without for configuration in _matching(everything, samples, "without", each)
    )
    space = Space(factors, gone)
    if space.size == 0:
        samples.fail("without", "[samples] without leaves no configuration")
    return space


def _matching(space: Space, samples: Section, key: str, wanted: Mapping[str, Any]) -> list[Configuration]:
    """All configurations with these levels."""
    numbers = {}
    for name, value in wanted.items():
        at = next((n for n, factor in enumerate(space.factors) if factor.name == name), None)
        if at is None:
            known = ", ".join(factor.name for factor in space.factors)
            samples.fail(key, f"[samples] {key} names {name!r}, which is no factor: expected some of {known}")
        levels = space.factors[at].levels
        if value not in levels:
            samples.fail(
                key, f"[samples] {key} has {name} = {value!r}: expected one of its levels, {list(levels)}"
            )
        numbers[at] = levels.index(value)
    return [
        configuration
        for configuration in space
        if all(configuration[at] == level for at, level in numbers.items())
    ]


def _rules(samples: Section, space: Space) -> Rules:
    samples.only(
        ("plan", "count", "error", "skip", "within", "confidence", "checks", "base", "without", "seed")
    )
    plan = cast(Plan, samples.one_of("plan", get_args(Plan), "full"))
    count = samples.number("count")
    if count is not None and count != int(count):
        samples.fail("count", f"[samples] count is {count:g}: expected a whole number up to {space.size}")
    base = samples.section("base").values
    configurations = _matching(space, samples, "base", base) if base else []
    if base and len(base) != len(space.factors):
        samples.fail("base", "[samples] base: expected a level of every factor")
    if base and not configurations:
        samples.fail("base", "[samples] base is left out by [samples] without")
    rules = Rules(
        plan,
        None if count is None else int(count),
        samples.share("error"),
        samples.flag("skip"),
        samples.share("within", 0.10) or 0.10,
        samples.share("confidence", 0.90) or 0.90,
        samples.whole("checks", 5, least=1) or 5,
        configurations[0] if configurations else None,
        samples.whole("seed", 0, least=0) or 0,
    )
    if (wrong := contradiction(rules, space.size)) is not None:
        samples.fail(wrong[0], f"[samples] {' '.join(wrong)}")
    return rules
