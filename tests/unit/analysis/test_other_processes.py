"""Who used the CPUs beside a test, from the blocks of the probe `others`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.analysis.warnings import Thresholds
from etude.analysis.warnings.machine import other_processes
from etude.present.sentences.warnings import found_text
from etude.results.blocks import Block, TrialBlock, to_line
from etude.results.reader import load_results
from support.builders import measurement, results_directory


def block(trial: int, *lines: str, name: str = "others") -> TrialBlock:
    return TrialBlock(trial, None, Block(name, lines))


def measured(directory: Path, blocks: Sequence[TrialBlock], elapsed_s: float = 1.0) -> Path:
    rows = [
        measurement(trial=n, elapsed_s=elapsed_s, kept=n > 1, why=None if n > 1 else "first run")
        for n in (1, 2, 3)
    ]
    path = results_directory(directory / "r", {"a": rows}, plan={"kind": "script"})
    text = "".join(json.dumps(to_line(each)) + "\n" for each in blocks)
    (path / "a" / "blocks.jsonl").write_text(text)
    return path


BLOCKS = (
    block(1, "make = 9.000 s (80 processes)"),
    block(
        2,
        "cc1 = 0.300 s (9 processes)",
        "kworker/0:1 = 0.010 s (1 process)",
        "(etude) = 0.500 s (2 processes)",
    ),
    block(2, "cc1 = 7.000 s (9 processes)", name="other"),
    block(3, "cc1 = 0.100 s (1 process)", "a = b = 0.020 s (1 process)", "(rest) = 0.030 s (8 processes)"),
    block(
        3,
        "(measured) = 4.000 s (the measured command; not in others_cpu)",
        "(machine) = 4.40 s (all CPUs; x)",
    ),
)


def test_others_are_named_by_what_they_used_in_the_included_trials(tmp_path: Path) -> None:
    found = verdict(load_results(measured(tmp_path, BLOCKS)))
    seen = other_processes(found.subject, found.subject.tests[0])
    assert seen is not None
    assert seen.trials == 2
    assert seen.cpu_s == pytest.approx({"cc1": 0.2, "(rest)": 0.015, "a = b": 0.01, "kworker/0:1": 0.005})
    (warning,) = [each for each in found.every if each.kind == "others"]
    assert warning.test == "a"
    assert warning.facts.share == pytest.approx(0.23)
    assert [found_text(warning).index(name) for name in ("cc1", "a = b", "kworker")] == sorted(
        found_text(warning).index(name) for name in ("cc1", "a = b", "kworker")
    )


def test_little_is_not_worth_a_word_and_no_probe_says_nothing(tmp_path: Path) -> None:
    path = measured(tmp_path, BLOCKS)
    verdict_options = VerdictOptions(thresholds=Thresholds.parse(["others=25%"]))
    assert not [
        each
        for each in verdict(load_results(path), verdict_options=verdict_options).every
        if each.kind == "others"
    ]
    (path / "a" / "blocks.jsonl").unlink()
    found = verdict(load_results(path))
    assert other_processes(found.subject, found.subject.tests[0]) is None
