"""Further trials belong to the results of which they were begun: of others, new ones are made beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import etude as library
from support.real import etude

TESTS = ("-n", "a", "./work 0.01", "-n", "b", "./work 0.02")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Results of two tests."""
    (tmp_path / "work").write_text('#!/bin/sh\nexec sleep "$1"\n')
    (tmp_path / "work").chmod(0o755)
    etude("bench", "-o", "r", "--trials", "5", *TESTS, cwd=tmp_path)
    return tmp_path


def pairs_of(place: Path, results: str = "r", *options: str) -> dict[str, Any]:
    """What is told."""
    found: dict[str, Any] = json.loads(
        etude("why", results, "--pairs", "5", "--json", "-q", *options, cwd=place).stdout
    )
    return found


def measured_anew(place: Path) -> None:
    """The same tests are measured again into the same directory."""
    kept = place / "r" / "why"
    kept.rename(place / "kept")
    shutil.rmtree(place / "r")
    etude("bench", "-o", "r", "--trials", "5", *TESTS, cwd=place)
    (place / "kept").rename(kept)


def test_pairs_of_results_that_were_measured_anew_are_made_anew_beside_the_old_ones(place: Path) -> None:
    first = pairs_of(place)
    before = (place / "r" / "why" / "why.json").read_bytes()
    measured_anew(place)
    second = pairs_of(place)
    assert second["difference"] != first["difference"]
    assert len(second["lacking"]) == len(first["lacking"]) + 1
    assert (place / "r" / "why" / "why.json").read_bytes() == before
    assert pairs_of(place) == second
    assert library.why(place / "r").directory == place / "r" / "why-2"


def test_unfinished_pairs_of_other_results_are_not_continued(place: Path) -> None:
    pairs_of(place)
    (place / "r" / "why" / "why.json").unlink()
    measured_anew(place)
    rows = (place / "r" / "why" / "a" / "results.jsonl").read_bytes()
    pairs_of(place)
    assert (place / "r" / "why" / "a" / "results.jsonl").read_bytes() == rows
    assert (place / "r" / "why-2" / "why.json").exists()


def test_pairs_of_a_directory_that_is_named_for_other_results_are_beside_it(place: Path) -> None:
    pairs_of(place, "r", "-o", "p")
    etude("bench", "-o", "s", "--trials", "5", *TESTS, cwd=place)
    pairs_of(place, "s", "-o", "p")
    assert (place / "p-2" / "why.json").exists()


def test_results_that_were_only_extended_keep_their_pairs(place: Path) -> None:
    first = pairs_of(place)
    etude("bench", "--resume", "r", "--trials", "7", cwd=place)
    assert pairs_of(place) == first
    assert not (place / "r" / "why-2").exists()


def test_a_program_or_machine_that_is_another_one_is_noticed(place: Path) -> None:
    pairs_of(place)
    path = place / "r" / "why" / "explained.json"
    noted = path.read_text()
    for kind in ("program", "test", "kernel"):
        other = {name: "0" if name.startswith(kind) else digest for name, digest in json.loads(noted).items()}
        assert other != json.loads(noted)
        path.write_text(json.dumps(other))
        assert library.why(place / "r", pairs=5).directory == place / "r" / "why-2", kind
    path.unlink()  # of an Étude that did not note it
    assert library.why(place / "r", pairs=5).directory == place / "r" / "why"
    path.write_text("[]")
    etude("why", "r", cwd=place, check=3)


@pytest.mark.more
def test_slow_trials_of_earlier_results_are_left_alone_too(place: Path) -> None:
    words = ["why", "r", "a", "--outliers", "--trials", "10", "--json", "-q"]
    etude(*words, cwd=place)
    path = place / "r" / "why-outliers" / "explained.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"first session": "0"}))
    etude(*words, cwd=place)
    assert (place / "r" / "why-outliers-2" / "why-outliers.json").exists()
