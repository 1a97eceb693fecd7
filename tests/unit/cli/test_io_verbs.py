"""Command lines of `etude io` that cannot be meant: one line, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.builders import measurement, results_directory

Etude = Callable[..., int]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--buffers", "16..8"], 2, "--buffers/-b: sizes 16..8: "),
        (["--buffers", "0"], 2, "--buffers/-b: size '0': "),
        (["--trials", "1"], 2, "at least 2"),
        (["--refine", "-1"], 2, "refine -1: "),
        (["--cpu", "-1"], 2, "CPU -1: "),
        (["--totals", "1T", "--buffers", "1M"], 5, ": 2TiB "),
        (["short"], 3, "short: is 5 bytes"),
        (["--resume", "r", "--trials", "5"], 2, "--resume takes"),
        (["--resume", "nosuch"], 3, "etude: nosuch: "),
        (["--program", "nosuch"], 2, "invalid choice: 'nosuch'"),
        (["--format", "gif"], 2, "--format: invalid choice: 'gif'"),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_one_line_and_leaves_nothing(
    etude: Etude, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    Path("short").write_text("short")
    assert etude("io", "sweep", *arguments) == code
    assert text in one_line(capsys)
    assert [path.name for path in Path().iterdir()] == ["short"]


def test_the_lab_says_what_its_second_sweep_lacks_before_the_first(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("short").open("wb") as file:
        file.truncate(20 << 20)
    assert etude("io", "lab", "short") == 3
    line = one_line(capsys)
    assert all(part in line for part in ("short: ", "20971520", "128MiB"))
    assert [path.name for path in Path().iterdir()] == ["short"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--resume", "nosuch"], 3, "nosuch: holds no lab.json"),
        (["--resume", "r", "--trials", "5"], 2, "leave out all else but --format"),
        (["elsewhere", "--resume", "r"], 2, "leave out all else but --format"),
        ([".", "--resume", "r"], 2, "leave out all else but --format"),
        (["--check", "nosuch.toml", "--format", "pdf"], 2, "--check takes its settings from its file"),
        (["--check", "nosuch.toml"], 3, "nosuch.toml: cannot be read"),
        (["--check", "a.toml", "--exercise"], 2, "--check takes its settings from its file"),
    ],
)
def test_a_lab_that_cannot_be_resumed_is_one_line(
    etude: Etude, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    assert etude("io", "lab", *arguments) == code
    assert text in one_line(capsys)
    assert list(Path().iterdir()) == []


def test_figures_of_several_sweeps_are_not_written_over_each_other(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("io", "explain", "a", "b", "--figures", ".") == 2
    assert "--figures takes one" in one_line(capsys)


@pytest.mark.parametrize("verb", [("sweep", "--resume"), ("explain",)])
def test_results_of_another_kind_are_no_sweep(
    etude: Etude, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    results_directory(Path("other"), {"a": [measurement()]}, plan={"kind": "script"})
    assert etude("io", *verb, "other") == 3
    assert "etude: other: " in one_line(capsys)


def test_help_of_each_verb_says_what_it_does(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    for verb, option in (("sweep", "--refine N"), ("explain", "--figures DIR"), ("lab", "--trials N")):
        assert etude("io", verb, "--help") == 0
        said = capsys.readouterr().out
        assert option in said


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("etude: ")
    assert err.count("\n") == 1
    return err
