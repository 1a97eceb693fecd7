"""Errors of the Python interface: each is an EtudeError that names its public function or class."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import etude
from etude.errors import EtudeError, UsageError
from support.stored import directory

wrong: Any = None


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda _: etude.bench(["sleep 0.001"], masks=["("]), "bench"),
        (lambda _: etude.bench(["sleep \0"]), "bench"),
        (lambda _: etude.Test(1, ("sleep", "0.001")), "Test"),  # type: ignore[arg-type]
        (lambda _: etude.Test("a", ("sleep", 1)), "Test"),  # type: ignore[arg-type]
        (lambda _: etude.Test("a", "sleep 0.001"), "Test"),  # type: ignore[arg-type]
        (lambda _: etude.Test("a", ()), "Test"),
        (lambda _: etude.SurfaceMap.read(wrong), "SurfaceMap.read"),
        (lambda place: etude.SurfaceMap.read(place), "SurfaceMap.read"),
        (lambda _: etude.PeakRate.read("nothere"), "PeakRate.read"),
        (lambda _: etude.Recording.read("nothere"), "Recording.read"),
        (lambda place: etude.plot(place / "t.csv").save("x.docx"), "Plot.save"),
        (lambda place: etude.plot(place, test="x"), "plot"),
    ],
)
def test_an_error_names_its_public_function(
    call: Callable[[Path], object], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = directory(tmp_path / "r", {"sort": [1.0, 2.0, 1.5], "b": [2.0, 1.0, 1.5]})
    (place / "t.csv").write_text("test,ms\na,1\na,2\nb,3\nb,4\n")
    with pytest.raises(EtudeError) as raised:
        call(place)
    assert str(raised.value).split(": ")[0] == f"etude.{name}"
    assert [each.name for each in tmp_path.iterdir()] == ["r"]


@pytest.mark.parametrize("words", [("a", "b\0"), ("a\0",)])
def test_a_zero_byte_is_refused_before_the_start(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        etude.Test("a", words)
