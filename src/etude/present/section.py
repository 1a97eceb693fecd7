"""A result as data that do not depend on the medium: sentences, commands, tables and figures, in order; a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from etude.figures.data import Figure

Weight = Literal["plain", "strong", "aside", "warning"]
"""Weight of a sentence."""
Room = Literal["any", "screen", "page"]
"""Media of a block: a screen has the short form of what a page has in full."""


MET, NOT_MET, OPEN, TO_BE_JUDGED = "met", "not met", "undecided", "to be judged"
"""Outcomes of an expectation; the last is for one in plain words, which a reader judges."""
NO_VALUE = ("", "–")
"""Texts of a cell without a value."""


@dataclass(frozen=True)
class Number:
    """A cell that holds a number."""

    text: str
    value: float
    """Sort key of the row; NaN for an unknown value, which is sorted last."""


Cell = str | Number


def number(text: str, value: float | None) -> Number:
    """A cell that holds a number; None: it is not known."""
    return Number(text, math.nan if value is None else float(value))


def cell_text(cell: Cell) -> str:
    """The text of a cell."""
    return cell if isinstance(cell, str) else cell.text


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    heading: str
    cells: Sequence[Cell]
    rank: int = 0
    """0: always there; of the others the highest is left out first where the screen is too narrow."""
    words: bool = False
    """True if its cells hold words: on a screen they are left-aligned."""

    @property
    def texts(self) -> list[str]:
        """The texts of its cells."""
        return [cell_text(cell) for cell in self.cells]


@dataclass(frozen=True)
class Table:
    """Columns of cells; the first names the rows."""

    columns: tuple[Column, ...]
    key: str = ""
    """Its anchor in a page, each once."""
    caption: str = ""
    words: int = 1
    """Number of columns from the left that hold words; those of numbers are right-aligned."""
    every: bool = False
    """No column is left out, however narrow the screen: there are further tables then."""
    room: Room = "any"

    @property
    def numeric(self) -> tuple[bool, ...]:
        """True for each column of numbers: right of the first ones of words, and not marked as text."""
        return tuple(place >= self.words and not column.words for place, column in enumerate(self.columns))

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the columns."""
        return tuple(column.heading for column in self.columns)

    @property
    def rows(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells of each row."""
        return tuple(zip(*(column.cells for column in self.columns), strict=True))


def page_table(
    key: str,
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    words: int = 1,
    texts: Sequence[str] = (),
) -> Table:
    """A table of a page, by rows; `words`: how many columns from the left hold words; `texts`: headings of others that
    do. Columns after the first in which no cell has a value are left out."""
    by_column = list(zip(*rows, strict=True)) or [()] * len(headings)
    kept = [place for place, cells in enumerate(by_column) if not place or not cells or _has_value(cells)]
    columns = tuple(Column(headings[n], by_column[n], words=headings[n] in texts) for n in kept)
    return Table(columns, key, caption, sum(n < words for n in kept), room="page")


def _has_value(cells: Iterable[Cell]) -> bool:
    return any(cell_text(cell) not in NO_VALUE for cell in cells)


@dataclass(frozen=True)
class Sentence:
    """A sentence by itself, for a screen; an empty one parts what stands before from what follows."""

    text: str = ""
    weight: Weight = "plain"


def note(text: str) -> Sentence:
    """A sentence that readers of the numbers must know."""
    return Sentence(f"Note: {text}", "warning")


@dataclass(frozen=True)
class Command:
    """A command line that can be copied, and what it is for."""

    what: str
    command: str


@dataclass(frozen=True)
class FilePath:
    """A path or another text that can be copied whole, and what it is."""

    what: str
    path: str
    weight: Weight = "plain"


@dataclass(frozen=True)
class Paragraphs:
    """Sentences under a heading."""

    heading: str
    lines: tuple[str, ...]
    room: Room = "any"


@dataclass(frozen=True)
class Picture:
    """A figure with what it shows in words, for a page."""

    caption: str
    figure: Figure
    size: tuple[float, float] | None = None
    """Width and height in inches; None: a column's width."""


Block = Sentence | Command | FilePath | Paragraphs | Table | Picture


@dataclass(frozen=True)
class Section:
    """The presentation of one result."""

    key: str
    """Its anchor in a page; of several results with their numbers, so that each is once."""
    heading: str
    blocks: tuple[Block, ...]
    """Blocks in the order of a screen; a page has all paragraphs, then all figures, then all tables."""
    answer: tuple[str, ...] = ()
    """The opening of a whole page; empty where the tests' own verdict opens it."""
    questions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Its own sentences on a page's questions, by their keys (`page.answers.QUESTIONS`)."""

    @property
    def paragraphs(self) -> tuple[Paragraphs, ...]:
        """The paragraphs of a page."""
        return tuple(each for each in self.blocks if isinstance(each, Paragraphs) and each.room != "screen")

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The figures of a page."""
        return tuple(each for each in self.blocks if isinstance(each, Picture))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of a page."""
        return tuple(each for each in self.blocks if isinstance(each, Table) and each.room != "screen")


@dataclass(frozen=True)
class Answer:
    """One question and what the results say to it."""

    key: str
    question: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Expectation:
    """One test that says what it is for or what is expected of it."""

    test: str
    purpose: str
    expect: str
    result: str
    """The test's numbers, in a line."""
    met: str
    """One of `met`, `not met`, `undecided`, `to be judged`; empty where nothing was expected."""
    why: str
    """Evidence for the outcome; empty where a reader judges."""

    @property
    def mark(self) -> str:
        """Mark of the outcome, besides its words."""
        return {MET: "good", NOT_MET: "bad", OPEN: "open"}.get(self.met, "")


@dataclass(frozen=True)
class Warned:
    """A warning with where it leads."""

    anchor: str
    kind: str
    meaning: str
    """Meaning of the warning's kind."""
    test: str
    text: str
    advice: str
    chart: str
    """The anchor of the test that it speaks of; empty where it is about the whole."""
    trials: tuple[int, ...]
    """Trials that the warning names."""


@dataclass(frozen=True)
class TestSection:
    """One test with its charts, and what they show in words."""

    anchor: str
    test: str
    line: str
    warnings: tuple[Warned, ...]


@dataclass(frozen=True)
class Snapshot:
    """The machine of one result: members and values."""

    label: str
    members: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Source:
    """The measured program: a script's text, or a command line."""

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Content:
    """One report."""

    title: str
    made: str
    version: str
    labels: tuple[str, ...]
    headline: tuple[str, ...]
    answers: tuple[Answer, ...]
    expectations: tuple[Expectation, ...]
    comparisons: Table
    tests: Table
    metrics: Table
    summaries: tuple[Table, ...]
    warnings: tuple[Warned, ...]
    shown: tuple[TestSection, ...]
    snapshots: tuple[Snapshot, ...]
    differences: tuple[Table, ...]
    explained: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    setups: Table
    data: Mapping[str, Any]
    details: tuple[str, ...]
    """Sentences on the details of each comparison."""
    parts: tuple[Section, ...] = ()
    """Sections of searches and surfaces."""
    banner: str = ""
    """The notice above all else, that results are simulated; empty for measurements."""
    beside: tuple[Section, ...] = ()
    """Sections on the pool, and on what the monitor saw beside the trials."""

    @property
    def floors(self) -> bool:
        """True where the A/A noise of a comparison is known."""
        return any(each.get("floor") for result in self.data["results"] for each in result["comparisons"])

    @property
    def only_parts(self) -> bool:
        """True where nothing but parts was read: there are no tests, warnings and machines to list."""
        return bool(self.parts) and not (self.tests.rows or self.snapshots or self.summaries or self.sources)
