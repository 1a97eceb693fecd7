"""The effect of each transform of `transforms.TRANSFORMS` on a relation: rows, label, units, warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars

from etude.analysis.getstats.options import Settings
from etude.analysis.getstats.tables import high_scores, slopes
from etude.analysis.transforms import (
    Transform,
    aggregate_in,
    column_in,
    names_in,
    pairs_in,
    usage_of,
)
from etude.errors import InputError, UsageError
from etude.results.model import metric_kind
from etude.results.table import Table
from etude.stats.expression import ExpressionError, compile_expression
from etude.stats.operators import text as as_text
from etude.stats.predicate import figures
from etude.stats.transforms import rows as basic
from etude.stats.transforms.rows import PLACES, column, find, metrics


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows on their way through the transforms."""

    label: str
    frame: polars.DataFrame
    units: Mapping[str, str]
    """Units of the metrics, if known."""
    warnings: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    """Warnings raised before the relation was joined or split, each with its label at that time."""
    printed: tuple[str, ...] = ()
    """The text that transforms print."""
    keys: tuple[str, ...] = ()
    """Columns besides `test` whose values each form a test of their own."""
    measured: bool = True
    """True if the rows are measurements not yet joined into trials."""
    ours: bool = False
    """True for rows of a results directory or an Auto-pilot file, whose tables show times only."""
    keep_places: bool = False
    """True if `--project` keeps the columns that identify the measurement of a row."""
    known: Mapping[str, float | str] = field(default_factory=dict)
    """Variables besides the columns."""
    settings: Settings = field(default_factory=Settings)
    joins: Mapping[str, str] = field(default_factory=dict)
    """Join of workers by metric, for metrics whose rows state it."""
    emptied: str = ""
    """Message naming the transform that left no row; empty while there are rows."""

    @property
    def others(self) -> dict[str, float | str]:
        """Getstats' global variables, with those that were set."""
        return {
            "file": self.label,
            "fileno": 0.0,
            "filecount": 1.0,
            "confidencelevel": round(100.0 * self.settings.confidence, 10),
            "precision": float(self.settings.precision),
            "wraised": float(len(self.lines)),
            **self.known,
        }

    @property
    def lines(self) -> tuple[str, ...]:
        """All warnings, each with the label of its relation."""
        return (*self.earlier, *(f"{self.label}: {line}" for line in self.warnings))

    @property
    def shown(self) -> polars.DataFrame:
        """Its rows with the names that Getstats' expressions and warnings use: epoch, thread (from 1), sys, io."""
        return self.frame if self.keep_places else _in_getstats_words(self.frame)

    def warn(self, lines: Iterable[str]) -> Relation:
        """The relation with these lines added as warnings."""
        return replace(self, warnings=(*self.warnings, *lines))

    def with_frame(self, frame: polars.DataFrame) -> Relation:
        """The relation with other rows."""
        return replace(self, frame=frame)


def stepped(relations: Sequence[Relation], steps: Iterable[Transform]) -> list[Relation]:
    """The relations after these transforms, in their order; a group makes several of one.

    Raises:
        UsageError: there is no such column, or an expression cannot be evaluated.
    """
    found = list(relations)
    for transform in steps:
        found = [made for relation in found for made in _step(relation, transform)]
    return found


def _step(relation: Relation, transform: Transform) -> list[Relation]:
    if transform.if_exists and find(relation.frame, transform.if_exists) is None:
        return [relation]
    try:
        if transform.name == "group":
            return _group(relation, *transform.arguments)
        return [_STEPS[transform.name](relation, *transform.arguments)]
    except ExpressionError as error:
        raise usage_of(transform.name, error) from None
    except ValueError as error:
        raise UsageError(f"{relation.label}: --{transform.name}: {error}") from None


def read_pass(relation: Relation) -> Relation:
    """Measurements joined into a row per trial, with waiting time and CPU share: the first step of Getstats.

    Excluded rows are left out; failed rows among the others get a warning.
    """
    if not relation.measured:
        return relation
    frame = relation.frame
    if "kept" in frame.columns:
        relation = relation.with_frame(frame.filter(polars.col("kept")))
    relation = _exit_fail(relation)
    return replace(_wait_and_cpu(_unite(relation)), measured=False)


def apply(
    table: Table,
    transforms: Sequence[Transform],
    variables: Mapping[str, float | str] | None = None,
    *,
    confidence: float = 0.95,
    out: Callable[[str], object] = print,
) -> Table:
    """The table after these transforms: those that are shifted, then the joining of each trial, then the others.

    Without later transforms the joining is left to the caller that makes series of the table. Warnings of transforms
    are added to the table's warnings; text that they print goes to `out`.

    Raises:
        UsageError: there is no such column, an expression cannot be evaluated, or the table holds summaries only.
    """
    if not transforms:
        return table
    variables = variables or {}
    if table.summary_only:
        raise UsageError(
            f"{table.label}: holds summaries, not rows; --{transforms[0].name} cannot be applied"
        )
    settings = Settings(confidence=confidence).with_set(variables)
    start = Relation(
        table.label,
        table.frame,
        table.units,
        keys=table.parameters,
        keep_places=True,
        known=variables,
        settings=settings,
        joins=table.joins,
    )
    found = stepped([start], [_ungrouped(step) for step in transforms if step.shifted])
    later = [_ungrouped(step) for step in transforms if not step.shifted]
    (made,) = stepped([_unite(relation) for relation in found] if later else found, later)
    for text in made.printed:
        out(text)
    return _as_table(table, made)


def _ungrouped(step: Transform) -> Transform:
    """A table is one relation: its groups become tests."""
    return replace(step, name="group as tests") if step.name == "group" else step


def _as_table(table: Table, relation: Relation) -> Table:
    frame = relation.frame
    count = frame.height
    missing = {
        "test": polars.repeat(table.label or "?", count, dtype=polars.String, eager=True),
        "trial": polars.int_range(1, count + 1, eager=True),
        "worker": polars.repeat(0, count, dtype=polars.Int64, eager=True),
        "kept": polars.repeat(True, count, dtype=polars.Boolean, eager=True),
    }
    frame = frame.with_columns(
        values.alias(name) for name, values in missing.items() if name not in frame.columns
    )
    if not count:
        raise UsageError(f"{table.label}: {relation.emptied or 'no row is left after the transforms'}")
    names = metrics(frame, but=relation.keys)
    units = {name: relation.units.get(name, "1") for name in names}
    return replace(
        table,
        frame=frame,
        units=units,
        kinds={name: table.kinds.get(name) or metric_kind(name, units[name]).kind for name in names},
        parameters=tuple(name for name in dict.fromkeys(relation.keys) if name in frame.columns),
        attributes=tuple(name for name in table.attributes if name in frame.columns),
        warnings=(*table.warnings, *relation.warnings),
    )


def _cells(frame: polars.DataFrame, name: str) -> list[tuple[str, ...]]:
    return basic.cells(frame.select(name))[1:]


def _select(relation: Relation, expression: str) -> Relation:
    kept = relation.with_frame(basic.select(relation.frame, expression, relation.others))
    if kept.frame.height or not relation.frame.height:
        return kept
    return replace(kept, emptied=_nothing_selected(relation.frame, expression))


def _nothing_selected(frame: polars.DataFrame, expression: str) -> str:
    """Message that no row was selected, with the text values of the columns that the expression uses."""
    own = dict.fromkeys(find(frame, name) for name in compile_expression(expression).names)
    texts = {name: _cells(frame, name) for name in own if name and frame.schema[name] == polars.String}
    held = [f"; {name} is {_some(text for (text,) in cells)}" for name, cells in texts.items()]
    return f"No row of {frame.height} is left by --select {expression}{''.join(held)}."


def _some(values: Iterable[str], most: int = 3) -> str:
    found = list(dict.fromkeys(values))
    return ", ".join([*map(repr, found[:most]), *(["…"] if len(found) > most else [])])


def _project(relation: Relation, text: str) -> Relation:
    frame = relation.frame
    names = [column(frame, name) for name in names_in("project", text)]
    places = [name for name in frame.columns if name in PLACES] if relation.keep_places else []
    return relation.with_frame(basic.project(frame, [*places, *names]))


def _rename(relation: Relation, text: str) -> Relation:
    names = {column(relation.frame, old): new for old, new in pairs_in("rename", text).items()}
    units = {names.get(name, name): unit for name, unit in relation.units.items()}
    return replace(relation, frame=basic.rename(relation.frame, names), units=units)


def _update(relation: Relation, text: str) -> Relation:
    name, unit, expression = column_in(text)
    name = find(relation.frame, name) or name
    frame = basic.compute(relation.frame, name, expression, relation.others)
    unit = unit or relation.units.get(name, "1")
    made = replace(relation, frame=frame, units={**relation.units, name: unit})
    lacking = frame[name].null_count()
    return made.warn([f"{name}: {lacking} of {frame.height} rows have no value"] if lacking else [])


def _group(relation: Relation, name: str) -> list[Relation]:
    own = column(relation.frame, name)
    if not relation.frame.height:
        return [relation]
    count = len(relation.frame[own].unique())
    if count > MOST_GROUPS:
        raise ValueError(f"{own} has {count} different values; no more than {MOST_GROUPS} can be grouped")
    made = []
    for value, frame in basic.group(relation.frame, own):
        named = _in_getstats_words(frame.head(1))  # threads count from 1
        ((text,),) = _cells(named, name) if name in named.columns else _cells(frame.head(1), own)
        label = f"{relation.label} ({name}={'-' if value is None else text})"
        made.append(replace(relation, label=label, frame=frame, warnings=(), earlier=(), printed=()))
    return [replace(made[0], earlier=relation.lines, printed=relation.printed), *made[1:]]


MOST_GROUPS = 1000


def _group_as_tests(relation: Relation, name: str) -> Relation:
    """A text column becomes a key; any other column is copied as text first, since it must stay as it is."""
    own = column(relation.frame, name)
    if own == "test":
        return relation
    if relation.frame.schema[own] == polars.String:
        return replace(relation, keys=(*relation.keys, own))
    copy = f"{name} (group)"
    texts = polars.Series(copy, [text for (text,) in _cells(relation.frame, own)], dtype=polars.String)
    return replace(relation, frame=relation.frame.with_columns(texts), keys=(*relation.keys, copy))


def _aggregate(relation: Relation, text: str) -> Relation:
    by, functions = aggregate_in(text)
    counted = {
        column(relation.frame, name): "1" for name, function in functions.items() if function == "count"
    }
    rows = relation.frame
    if "kept" in rows.columns:  # figures leave out excluded rows
        rows = rows.filter(rows["kept"])
    frame = basic.aggregate(rows, functions, by)
    return replace(relation, frame=frame, units={**relation.units, **counted}, measured=False)


def _joins(relation: Relation) -> tuple[dict[str, str], dict[str, str]]:
    """Join of workers, and of the commands of one, by metric: as in `experiment.progress.Trial.value`."""
    kinds = {
        name: metric_kind(
            "system" if name == "sys" else name, relation.units.get(name, "1"), relation.joins.get(name)
        )
        for name in metrics(relation.frame)
    }
    return {n: k.join for n, k in kinds.items()}, {n: k.commands for n, k in kinds.items()}


def _trial(relation: Relation) -> list[str]:
    """Columns that identify the trial of a row. Raises NoColumnError if there is none."""
    keys = dict.fromkeys(["file", "test", *relation.keys, "sitting"])
    return [*(name for name in keys if name in relation.frame.columns), column(relation.frame, "trial")]


def _threads(relation: Relation) -> Relation:
    frame = basic.join_threads(relation.frame, _trial(relation), joins=_joins(relation)[0])
    return relation.with_frame(frame)


def _unite(relation: Relation) -> Relation:
    if find(relation.frame, "trial") is None:
        return relation
    workers, commands = _joins(relation)
    return relation.with_frame(
        basic.unite_commands(relation.frame, _trial(relation), joins=workers, commands=commands)
    )


def _unite_asked(relation: Relation) -> Relation:
    column(relation.frame, "trial")
    return _unite(relation)


def _wait_and_cpu(relation: Relation) -> Relation:
    frame = basic.wait_and_cpu(relation.frame)
    units = {"wait": "s", "cpu": "%"}
    new = {name: unit for name, unit in units.items() if name in frame.columns}
    return replace(relation, frame=frame, units={**new, **relation.units})


def _warn_row(relation: Relation, expression: str, text: str) -> Relation:
    return relation.warn(basic.warn_rows(relation.frame, expression, text, relation.others))


def _die(relation: Relation, expression: str, text: str) -> Relation:
    lines = basic.warn_rows(relation.frame, expression, text, relation.others)
    if lines:
        raise InputError(f"{relation.label}: {lines[0]}")
    return relation


def _warn_column(relation: Relation, expression: str, text: str) -> Relation:
    confidence = relation.settings.confidence
    return relation.warn(
        basic.warn_columns(relation.frame, expression, text, relation.others, confidence=confidence)
    )


def _warn_value(relation: Relation, expression: str, text: str) -> Relation:
    confidence = relation.settings.confidence
    return relation.warn(
        basic.warn_values(relation.frame, expression, text, relation.others, confidence=confidence)
    )


def _exit_fail(relation: Relation) -> Relation:
    if find(relation.frame, "status") is None or not relation.frame.schema["status"].is_numeric():
        return relation
    who = "Thread $thread" if find(relation.frame, "worker") else "A command"
    return _warn_row(relation, "$status != 0", f"{who} ended with status $status{_when(relation)}.")


def _negative_wait(relation: Relation) -> Relation:
    column(relation.frame, "wait")
    return _warn_row(relation, "$wait < 0", f"Waiting time is below zero, $wait s{_when(relation)}.")


def _when(relation: Relation) -> str:
    """The epoch of a row, and its file where there may be several."""
    when = " in epoch $epoch" if find(relation.frame, "trial") else ""
    return when + (" of $file" if "file" in relation.frame.columns else "")


def _columns(relation: Relation) -> Iterable[tuple[str, list[float], list[int | str]]]:
    for name in metrics(relation.frame):
        there = relation.frame.filter(polars.col(name).is_finite())[name]
        if len(there):
            yield name, there.cast(polars.Float64).to_list(), places(relation.frame, name)


def places(frame: polars.DataFrame, name: str, row: str = "row ") -> list[int | str]:
    """Origin of each finite value of a column: its epoch, with the file if there are several.

    row: text before the number of a row whose epoch is unknown.
    """
    numbered = frame.with_row_index("row of it", 1)
    trial = find(frame, "trial")
    there = numbered.filter(polars.col(name).is_finite())
    if trial is None or not frame.schema[trial].is_numeric() or frame[trial].null_count():
        numbers = there["row of it"].to_list()
        return [f"{row}{number}" for number in numbers] if row else numbers
    epochs = there[trial].cast(polars.Int64).to_list()
    if "file" not in frame.columns:
        return epochs
    return [f"epoch {epoch} of {file}" for epoch, file in zip(epochs, there["file"], strict=True)]


def _high_scores(relation: Relation) -> Relation:
    lines: list[str] = []
    for name, values, epochs in _columns(relation):
        lines += high_scores(name, values, epochs, figures(values), relation.settings.high_z)
    return relation.warn(lines)


def _slopes(relation: Relation) -> Relation:
    limit = relation.settings.slope
    lines: list[str] = []
    for name, values, _ in _columns(relation):
        lines += slopes(name, figures(values), 1.0 if limit is None else limit)
    return relation.warn(lines)


def _in_getstats_words(frame: polars.DataFrame) -> polars.DataFrame:
    """The frame with the names that expressions and warnings use: epoch, thread (from 1), sys, io."""
    if "worker" in frame.columns and "thread" not in frame.columns:
        frame = frame.with_columns(polars.col("worker") + 1).rename({"worker": "thread"})
    words = {"trial": "epoch", "system": "sys", "wait": "io"}
    frame = frame.rename(
        {own: word for own, word in words.items() if own in frame.columns and word not in frame}
    )
    if "kept" in frame.columns and frame["kept"].all():
        frame = frame.drop("kept")
    return frame.drop("test") if "test" in frame.columns and frame["test"].n_unique() <= 1 else frame


def _print(relation: Relation, text: str) -> Relation:
    return replace(relation, printed=(*relation.printed, text))


_STEPS: Mapping[str, Callable[..., Relation]] = {
    "select": _select,
    "project": _project,
    "rename": _rename,
    "update": _update,
    "group as tests": _group_as_tests,
    "aggregate": _aggregate,
    "aggthreads": _threads,
    "unifycommand": _unite_asked,
    "waitcpu": _wait_and_cpu,
    "warnrow": _warn_row,
    "warncol": _warn_column,
    "warnval": _warn_value,
    "die": _die,
    "eval": lambda relation, text: _print(
        relation, as_text(compile_expression(text).evaluate(relation.others))
    ),
    "exitfail": _exit_fail,
    "negio": _negative_wait,
    "warnz": _high_scores,
    "warnregress": _slopes,
    "echo": lambda relation, text: _print(relation, basic.echo(text, relation.others)),
    "describe": lambda relation: _print(relation, "\n".join(basic.dump(basic.describe(relation.shown)))),
    "csv": lambda relation: _print(relation, basic.csv(relation.shown)),
    "dump": lambda relation: _print(relation, "\n".join([relation.label, *basic.dump(relation.shown)])),
}
