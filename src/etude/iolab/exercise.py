"""The lab as an exercise: the questions of its notes, and answers graded against this machine's own intervals."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from etude.iolab.comparisons import Comparison
from etude.iolab.costs import Cost, Costs
from etude.iolab.lab import Studied
from etude.iolab.landmarks import size_text
from etude.iolab.points import Points
from etude.iolab.shapes import Parting, Shape
from etude.stats.resampling import resampled_medians
from etude.toml_config import Section, document
from etude.units.formatting import quantity as shown
from etude.units.parsing import quantity

Kind = Literal["size", "time", "rate", "ratio"]
UNITS: Mapping[Kind, str | None] = {"size": "B", "time": "s", "rate": "B/s", "ratio": None}
EXAMPLES: Mapping[Kind, str] = {"size": "32KiB", "time": "400ns", "rate": "5GiB/s", "ratio": "1.25"}
NAME = "answers.toml"
LAB = "lab"
WORDS = ("everywhere", "nowhere", "open")
"""Answers in place of a size: below the share at every size, at none, or these trials leave it open."""
ROUNDED = 0.02
"""Answers are read off figures and rounded: an interval is wider by so much at either end."""
DRAWS = 999


@dataclass(frozen=True)
class Question:
    """A question, and its answer by this machine's trials: `low` to `high`, or `word`."""

    key: str
    text: str
    kind: Kind
    low: float | None
    high: float | None
    word: str | None = None

    @property
    def expected(self) -> str:
        """The expected value in words."""
        if self.low is None or self.high is None:
            return f'"{self.word}"'
        return f"{_shown(self.low, self.kind)} to {_shown(self.high, self.kind)}"


@dataclass(frozen=True)
class Grade:
    """`right` is None where there is no answer."""

    question: Question
    answer: str
    right: bool | None


def questions(studied: Sequence[Studied]) -> list[Question]:
    """The questions of all sweeps of a lab, without those that their trials cannot answer."""
    return [question for each in studied for question in _of(each)]


def _of(studied: Studied) -> Iterator[Question]:
    reading = studied.reading
    costs = {each.curve: each for each in reading.costs}
    for shape in reading.shapes:
        if shape.curve in ("touched", "untouched"):
            curve = studied.swept.curve(shape.curve)
            assert curve is not None
            yield from _buffers(shape, curve, costs.get(shape.curve))
    for parting in reading.partings:
        if parting.curve == "touched":
            yield from _parting(parting, studied)
    for comparison in reading.comparisons[:1]:
        yield from _totals(comparison, studied)


def _buffers(shape: Shape, curve: Points, costs: Costs | None) -> Iterator[Question]:
    name = shape.curve
    if name == "touched":
        yield Question("peak_at", f"At which buffer size is {name} fastest?", "size", shape.low, shape.high)
        low, high = curve.quartiles
        near = (curve.sizes >= shape.low) & (curve.sizes <= shape.high)
        yield Question(
            "peak", "How fast is it there?", "rate", float(low[near].min()), float(high[near].max())
        )
        if costs is not None and costs.call_s is not None:
            yield _cost("call", "What does a call cost, however little it transfers?", costs.call_s)
    elif costs is not None and costs.page_s is not None:
        yield _cost("page", "What does a fresh page of the untouched buffer cost?", costs.page_s)


def _cost(key: str, text: str, cost: Cost) -> Question:
    return Question(key, text, "time", cost.interval.low, cost.interval.high)


def _parting(found: Parting, studied: Studied) -> Iterator[Question]:
    plain, other = (studied.swept.curve(name) for name in ("untouched", found.curve))
    assert plain is not None
    assert other is not None
    low, high = _ratio(plain, other, found.size)
    size = size_text(found.size)
    text = f"How many times as fast as untouched is {found.curve} at {size}?"
    yield Question("touched_ratio", text, "ratio", low, high)
    if found.low is not None:
        text = "From which size on is it faster by more than 5 %?"
        yield Question("parting", text, "size", found.low, found.high)


def _totals(found: Comparison, studied: Studied) -> Iterator[Question]:
    if not found.ratios or found.difference is None:
        return
    base, other = (studied.swept.curve(name) for name in (found.base, found.other))
    assert base is not None
    assert other is not None
    first = found.ratios[0].size
    low, high = _ratio(base, other, first)
    text = f"How many times as long as {found.base} does {found.other} take at {size_text(first)}?"
    yield Question("linking_ratio", text, "ratio", low, high)
    if not found.differs:
        return
    least, most = sorted(abs(end) for end in (found.difference.least, found.difference.most))
    text = f"By how much do {found.base} and {found.other} differ?"
    yield Question("linking_time", text, "time", least, most)
    words = {"below everywhere": "everywhere", "not below": "nowhere", "open": "open"}
    for level in found.crossings:
        share = round(100 * (level.level - 1))
        text = f"From which file size on do they differ by less than {share} %? A size, or " + ", ".join(
            f'"{word}"' for word in WORDS
        )
        word = words.get(level.state)
        yield Question(f"below_{share}_percent", text, "size", level.low, level.high, word)


def _ratio(base: Points, other: Points, size: float) -> tuple[float, float]:
    """The 95 % interval of the ratio of medians at a size, by the percentile bootstrap."""
    drawn = resampled_medians([base.at(size), other.at(size)], DRAWS, np.random.default_rng(0))
    low, high = np.quantile(drawn[:, 1] / drawn[:, 0], (0.025, 0.975))
    return float(low), float(high)


def template(asked: Sequence[Question], lab: str = ".") -> str:
    """The file in which answers are written: a key a question, without an answer."""
    lines = [
        "# Answer in quotes, with a unit; leave what you do not know empty. Then: etude io lab --check THIS-FILE",
        "",
        "# The lab's directory, from this file's.",
        f'{LAB} = "{lab}"',
    ]
    for question in asked:
        lines += ["", f'# {question.text} (such as "{EXAMPLES[question.kind]}")', f'{question.key} = ""']
    return "\n".join(lines) + "\n"


def lab_of(path: str | os.PathLike[str]) -> tuple[Section, Path]:
    """A file of answers, and the lab that it is about. Raises InputError where it is none."""
    answers = document(Path(path))
    lab = answers.text_at(LAB)
    if not lab:
        answers.fail(None, f'{LAB} is missing: expected the directory of the lab, as {LAB} = "."')
    return answers, Path(path).parent / lab


def graded(answers: Section, asked: Sequence[Question]) -> list[Grade]:
    """Each question with its answer. Raises InputError for an answer that has no such unit, and for unknown keys."""
    answers.only([LAB, *(question.key for question in asked)])
    return [_grade(answers, question) for question in asked]


def _grade(answers: Section, question: Question) -> Grade:
    given = answers.values.get(question.key, "")
    answer = given.strip() if isinstance(given, str) else f"{given}"
    if not answer:
        return Grade(question, "", None)
    if question.key.startswith("below_") and answer in WORDS:
        return Grade(question, answer, answer == question.word)
    value = quantity(answer)
    if value is None or (value[1] or UNITS[question.kind]) != UNITS[question.kind]:
        words = f", or {' or '.join(WORDS)}" if question.key.startswith("below_") else ""
        answers.fail(
            question.key, f'{question.key} is {given!r}: expected such as "{EXAMPLES[question.kind]}"{words}'
        )
    if question.low is None or question.high is None:
        return Grade(question, answer, False)
    within = question.low * (1 - ROUNDED) <= value[0] <= question.high * (1 + ROUNDED)
    return Grade(question, answer, within)


def _shown(value: float, kind: Kind) -> str:
    if kind == "size":
        return size_text(value)
    return f"{value:.3g}" if kind == "ratio" else shown(value, UNITS[kind] or "")
