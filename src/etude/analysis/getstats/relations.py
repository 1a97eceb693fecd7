"""Getstats' inputs as relations, which transforms change before tables are made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars

from etude.analysis.getstats.options import JUDGED, GetstatsOptions
from etude.analysis.getstats.sources import Source, TableSource, is_ours, is_plain_table, tests_of
from etude.analysis.getstats.summaries import of_table
from etude.analysis.getstats.tables import FREE, File, Raw, without_values
from etude.analysis.pipeline import Relation, places, read_pass, stepped
from etude.errors import InputError, UsageError
from etude.results import delimited
from etude.results.readers import read_table
from etude.results.res import read_res
from etude.results.table import Table
from etude.results.trials import read_trials, trials_of_results
from etude.stats.columns import DISPLAY, display_name, metric_name
from etude.stats.transforms.rows import cells, find, metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def read_sources(path: str) -> list[Source]:
    """The relations of a file or directory.

    Raises:
        InputError: it cannot be read, or has no known format.
    """
    file = Path(path)
    if is_ours(file):
        return tests_of(path, read_trials(file) if os.path.isdir(file) else trials_of_results(read_res(file)))
    if is_plain_table(path):
        return [TableSource(path, delimited.read_table(file))]
    return read_other(path)


def read_other(path: str) -> list[Source]:
    """Tests of another program's file after the readpass, or its summaries."""
    table = read_table(path)
    if table.summary_only:
        return list(of_table(path, table))
    return [RelationSource(read_pass(relation)) for relation in _relations_of(path, table)]


def transformed_sources(paths: Iterable[str], options: GetstatsOptions) -> list[Source]:
    """The files after the pipeline: shifted transforms, readpass, the other transforms; in order.

    Raises:
        InputError, UsageError: a file cannot be read; a transform does not fit; columns do not agree (`--concat`).
    """
    relations = [made for path in paths for made in _read(path)]
    if options.concat:
        relations = [_concatenated(relations)]
    relations = [
        replace(
            relation,
            settings=options.settings,
            known={"fileno": float(place), "filecount": float(len(relations)), **options.variables},
        )
        for place, relation in enumerate(relations)
    ]
    found = stepped(relations, [step for step in options.transforms if step.shifted])
    if options.standard and not options.raw:
        found = list(map(read_pass, found))
    if not options.raw:
        found = stepped(found, [step for step in options.transforms if not step.shifted])
    projected = any(step.name == "project" for step in options.transforms)
    began = {name for relation in relations for name in relation.frame.columns}
    return [RelationSource(relation, projected, frozenset(began)) for relation in found]


def printed(sources: Sequence[Source]) -> list[str]:
    """Text that transforms printed."""
    return [
        text for source in sources if isinstance(source, RelationSource) for text in source.relation.printed
    ]


def warned(sources: Sequence[Source]) -> list[str]:
    """Warnings of transforms, for outputs without a table to show them."""
    relations = [source.relation for source in sources if isinstance(source, RelationSource)]
    return [line for relation in relations for line in relation.lines]


def emptied(sources: Sequence[Source]) -> list[str]:
    """Messages on files of which a transform left no row, for outputs without warnings."""
    relations = [source.relation for source in sources if isinstance(source, RelationSource)]
    return [f"{relation.label}: {relation.emptied}" for relation in relations if relation.emptied]


@dataclass(frozen=True)
class RelationSource:
    """A relation after the readpass, as a source of Getstats."""

    relation: Relation
    projected: bool = False
    """True if the user chose the columns (`--project`)."""
    began: frozenset[str] = frozenset()
    """Columns of the input, which are shown only on request unless they are default ones."""

    @property
    def label(self) -> str:
        return self.relation.label

    def judged(self, columns: Sequence[str] | None) -> dict[str, list[float]]:
        there = [name for name in JUDGED if find(self.relation.frame, name) is not None]
        if columns is None and not there:
            raise UsageError(f"{self.label}: has no column {', '.join(JUDGED)}; name others with --columns")
        wanted = there if columns is None else columns
        return {metric_name(name): self._values(self._own(name))[0] for name in wanted}

    def shown(self, columns: Sequence[str] | None) -> File:
        samples, epochs = dict[str, list[float]](), dict[str, list[int | str]]()
        for name in self._usual() if columns is None else map(self._own, columns):
            values, where = self._values(name)
            if values:
                samples[display_name(name)] = values
                epochs[display_name(name)] = where
        warnings = list(self.relation.warnings)
        if not samples:
            warnings.append(self.relation.emptied or "No row with a number is left.")
        else:
            warnings += without_values(columns, samples)
        free = [name for name in metrics(self.relation.frame) if name in FREE and name not in samples]
        watched = {name: self._values(name)[0] for name in free}
        earlier = self.relation.earlier
        return File(self.label, samples, epochs, warnings, watched=watched, earlier=earlier)

    def raw(self) -> Raw:
        return cells(self.relation.shown)

    def _own(self, name: str) -> str:
        frame = self.relation.frame
        own = find(frame, name)
        known = ", ".join(map(metric_name, metrics(frame)))
        if own is None:
            raise UsageError(f"{self.label}: has no column {name!r}; it has {known}")
        if not frame.schema[own].is_numeric():
            raise InputError(f"{self.label}: column {name}: holds no numbers; those that do are {known}")
        return own

    def _usual(self) -> list[str]:
        """Times, waiting and CPU in the paper's order, then columns that transforms made; else all numbers."""
        frame = self.relation.frame
        numbers = metrics(frame)
        times = [own for name in DISPLAY if (own := find(frame, name)) in numbers and own is not None]
        whole = self.relation.ours or all(find(frame, name) for name in JUDGED)
        if self.projected or not times or not whole:
            return [*times, *(name for name in numbers if name not in times)]
        made = [name for name in numbers if name not in times and name not in self.began]
        return [*times, *(made if self.began else [])]

    def _values(self, name: str) -> tuple[list[float], list[int | str]]:
        frame = self.relation.frame
        there = frame.filter(polars.col(name).is_finite())
        had_epochs = not self.began.isdisjoint(("trial", "epoch"))
        return there[name].cast(polars.Float64).to_list(), places(frame, name, "row " if had_epochs else "")


def _read(path: str) -> list[Relation]:
    if not is_ours(Path(path)) and is_plain_table(path):
        return [_plain_relation(path)]
    table = read_table(path)
    if table.summary_only:
        raise InputError(f"{path}: holds summaries, not rows; no transform can be applied to them")
    return list(_relations_of(path, table))


def _relations_of(path: str, table: Table) -> Iterator[Relation]:
    keys = ["test", *table.parameters]
    parts = table.frame.partition_by(keys, maintain_order=True, as_dict=True, include_key=True)
    ours = is_ours(Path(path))
    for number, (values, frame) in enumerate(parts.items()):
        single = len(parts) == 1 and not Path(path).is_dir()
        label = path if single else f"{path.rstrip('/')}/{_named(keys, values)}"
        warnings = [_sentence(line) for line in table.warnings] if number == 0 else []
        yield Relation(
            label, frame, table.units, tuple(warnings), keys=table.parameters, ours=ours, joins=table.joins
        )


def _named(keys: Sequence[str], values: Sequence[object]) -> str:
    test, *texts = values
    parameters = zip(keys[1:], texts, strict=True)
    missing = [
        f"{name}={text}" for name, text in parameters if text is not None and str(text) not in str(test)
    ]
    return f"{test} ({', '.join(missing)})" if missing else str(test)


def _plain_relation(path: str) -> Relation:
    cells = delimited.read_table(path)
    columns, warnings = list[polars.Series](), list[str]()
    for name, texts in zip(cells.header, zip(*cells.rows, strict=True), strict=True):
        numbers = cells.numbers(name)
        text = isinstance(numbers, str)
        kind = polars.String if text else polars.Float64
        columns.append(polars.Series(name, list(texts) if text else numbers, dtype=kind))
        if isinstance(numbers, str) and "in row 2 " not in numbers:  # the first row has a number
            warnings.append(f"Column {name} is taken as text: {numbers}.")
    return Relation(path, polars.DataFrame(columns), {}, tuple(warnings), measured=False)


def _concatenated(relations: Sequence[Relation]) -> Relation:
    """One relation of all; a column `file` says where each row is from. Raises UsageError where columns differ."""
    first, *others = relations
    for other in others:
        differ = sorted(set(first.frame.columns) ^ set(other.frame.columns))
        if differ:
            raise UsageError(
                f"--concat: {first.label} and {other.label} differ in columns {', '.join(differ)}; "
                "make them agree, as with --shift --project in a call for each"
            )
    labels = [relation.label for relation in relations]
    names = [f"{label} ({n})" if labels.count(label) > 1 else label for n, label in enumerate(labels, 1)]
    frames = [
        relation.frame.select(first.frame.columns).with_columns(file=polars.lit(name))
        for relation, name in zip(relations, names, strict=True)
    ]
    earlier = tuple(line for relation in relations for line in relation.lines)
    label = " + ".join(labels)
    frame = polars.concat(frames, how="vertical_relaxed")
    return replace(first, label=label, frame=frame, warnings=(), earlier=earlier)


def _sentence(line: str) -> str:
    text = line[:1].upper() + line[1:]
    return text if text.endswith(".") else f"{text}."
