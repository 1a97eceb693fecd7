"""Questions of the lab, and answers graded against the intervals of its own trials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from etude.errors import InputError
from etude.iolab.exercise import Question, graded, lab_of, questions, template
from etude.iolab.lab import Studied, reading_of
from etude.iolab.points import Over, Points, Swept
from etude.results.results import Results

NOISE = np.array([0.99, 0.995, 1.0, 1.0, 1.005, 1.01])
CALL_S, PEAK, PAGE_S = 100e-9, 8e9, 1e-6


def studied(over: Over, *curves: Points) -> Studied:
    command = ["io-static", "read", "-t", "16777216", "--touch"]
    tests = [
        {"command": command[: 5 if curve.name == "touched" else 4], "parameters": {"curve": curve.name}}
        for curve in curves
    ]
    swept = Swept(
        over, "bandwidth" if over == "buffer" else "elapsed", curves, None, {"plan": {"tests": tests}}
    )
    return Studied(Results(Path("r"), {}, {}, ()), swept, reading_of(swept), {})


@pytest.fixture(scope="module")
def lab() -> list[Studied]:
    def buffers(name: str, page_s: float) -> Points:
        sizes, total = [2.0**n for n in range(6, 25)], 2.0**24
        seconds = [total / n * CALL_S + total / PEAK + n / 4096 * page_s for n in sizes]
        return Points(name, np.array(sizes), tuple(total / s * NOISE for s in seconds))

    def totals(name: str, start_s: float) -> Points:
        sizes = [2.0**n for n in range(0, 28, 3)]
        return Points(name, np.array(sizes), tuple((start_s + n / PEAK) * NOISE for n in sizes))

    return [
        studied("buffer", buffers("untouched", PAGE_S), buffers("touched", 0.0)),
        studied("total", totals("static", 0.5e-3), totals("dynamic", 0.8e-3)),
    ]


RIGHT = {
    "peak_at": "4MiB",
    "peak": "8GB/s",
    "call": "100ns",
    "page": "1us",
    "touched_ratio": "2.95",
    "linking_ratio": "1.6",
    "linking_time": "0.3ms",
}


def check(tmp_path: Path, lab: list[Studied], answers: dict[str, str]) -> dict[str, bool | None]:
    text = template(questions(lab))
    for key, answer in answers.items():
        assert f'{key} = ""' in text
        text = text.replace(f'{key} = ""', f'{key} = "{answer}"')
    (tmp_path / "answers.toml").write_text(text)
    section, directory = lab_of(tmp_path / "answers.toml")
    assert directory == tmp_path
    return {grade.question.key: grade.right for grade in graded(section, questions(lab))}


def test_the_truth_of_the_machine_is_right_and_what_is_not_answered_is_not_wrong(
    tmp_path: Path, lab: list[Studied]
) -> None:
    found = check(tmp_path, lab, RIGHT)
    assert [key for key, right in found.items() if right] == [key for key in found if key in RIGHT]
    assert {right for key, right in found.items() if key not in RIGHT} == {None}


def test_twice_the_truth_is_wrong(tmp_path: Path, lab: list[Studied]) -> None:
    twice = {"peak": "16GB/s", "call": "200ns", "page": "2us", "linking_ratio": "3.2", "peak_at": "64"}
    found = check(tmp_path, lab, twice)
    assert [found[key] for key in twice] == [False] * len(twice)


@pytest.mark.parametrize(
    ("word", "answer", "right"),
    [
        (None, "10MiB", True),
        (None, "40MiB", False),
        (None, "nowhere", False),
        ("nowhere", "nowhere", True),
        ("nowhere", "10MiB", False),
        ("open", "open", True),
        ("everywhere", "nowhere", False),
    ],
)
def test_a_crossing_is_a_size_or_a_word(tmp_path: Path, word: str | None, answer: str, right: bool) -> None:
    low, high = (None, None) if word else (8 * 2.0**20, 12 * 2.0**20)
    asked = [Question("below_5_percent", "From which size on?", "size", low, high, word)]
    (tmp_path / "a.toml").write_text(f'lab = "."\nbelow_5_percent = "{answer}"\n')
    (grade,) = graded(lab_of(tmp_path / "a.toml")[0], asked)
    assert grade.right is right


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('peak = "5s"', r"a.toml:2: peak is '5s'"),
        ('peak = "fast"', r"a.toml:2: peak is 'fast'"),
        ("peak = true", r"a.toml:2: peak is True"),
        ('peek = "5GB/s"', r"a.toml:2: peek is not known: peak\?"),
    ],
)
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.toml").write_text(f'lab = "."\n{text}\n')
    with pytest.raises(InputError, match=reason):
        graded(lab_of(tmp_path / "a.toml")[0], [Question("peak", "How fast?", "rate", 1.0, 2.0)])
    (tmp_path / "a.toml").write_text(text + "\n")
    with pytest.raises(InputError, match="lab is missing"):
        lab_of(tmp_path / "a.toml")
