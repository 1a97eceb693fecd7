"""`graphit`: the command lines of the Auto-pilot paper, and what its options do."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cli.figures.graphit_run import series_of
from etude.cli.graphit import USAGE, main
from etude.cli.shared_options import key_place
from support.places import DATA

FIGURE_4 = """
graphit -mode=line \\
  -components=Elapsed,User,System \\
  -graphfile=ext4-pm.eps \\
  -k 'top right' -f 17 \\
  -xlabel Threads -ylabel "Time (seconds)"  \\
  Ext4 'ext4:*.res'
"""

FIGURE_5 = """
graphit -mode=bar \\
  -ylabel 'Time (seconds)' -f 17 \\
  -components=Elapsed,User,System \\
  -graphfile=pm.eps Ext2 ext2:1.res \\
  Ext4 ext4:1.res XFS xfs:1.res
"""

FIGURE_6 = """
graphit -mode=bar -ylabel 'Time (seconds)' -f 17 -rotate 45 -components=Elapsed,User,System -graphfile=grep.eps
  Sequential cooling.csv Chill cooling.csv Remount cooling.csv
  Remount+Chill cooling.csv Reboot cooling.csv Reboot+Chill cooling.csv
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The results of the PostMark example, in a directory of one's own."""
    for path in (*(DATA / "postmark").iterdir(), DATA / "cooling.csv"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(name: str) -> list[list[list[str]]]:
    """The blocks of a data file."""
    blocks = Path(name).read_text(encoding="utf-8").split("\n\n\n")
    return [[line.split() for line in block.splitlines() if line[:1] not in ("#", "")] for block in blocks]


def run(text: str) -> int:
    return main(shlex.split(text.replace("\\\n", " "))[1:])


def test_the_line_graph_of_the_paper_is_drawn_by_its_command() -> None:
    assert run(FIGURE_4) == 0
    assert Path("ext4-pm.eps").read_bytes().startswith(b"%!PS-Adobe")
    blocks = rows("ext4-pm.dat")
    assert [[row[0] for row in block] for block in blocks] == [["1", "2", "4"]] * 3
    script = Path("ext4-pm.gnuplot").read_text()
    for name in (
        "'Ext4 Elapsed'",
        "'Ext4 User'",
        "'Ext4 System'",
        "'Threads'",
        "'Time (seconds)'",
        "set key top right",
    ):
        assert name in script


def test_the_bar_graph_of_the_paper_is_drawn_by_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    from etude.cli import getstats

    assert run(FIGURE_5) == 0
    assert {path.name for path in Path().glob("pm.*")} == {"pm.eps", "pm.dat", "pm.gnuplot", "pm.py"}
    elapsed, system, user = rows("pm.dat")
    assert len(elapsed) == 3
    for below, above in zip(system, user, strict=True):
        assert below[2] == above[1]
    capsys.readouterr()
    getstats.main(["--csv", "--columns", "Elapsed", "ext2:1.res"])
    figures = capsys.readouterr().out.splitlines()[-1].split(",")
    numbers = [float(cell) for cell in figures if re.fullmatch(r"[\d.e+-]+", cell)]
    for value in (elapsed[0][2], elapsed[0][4], elapsed[0][5]):  # MEAN, LOW and HIGH
        assert any(abs(float(value) / number - 1) < 1e-9 for number in numbers), (value, figures)


def test_one_table_with_many_tests_gives_each_series_its_own() -> None:
    assert run(FIGURE_6) == 0
    elapsed, *_ = rows("grep.dat")
    assert len(elapsed) == 6
    assert "rotate by 45" in Path("grep.gnuplot").read_text()


def test_long_options_take_two_dashes_and_an_argument_of_its_own() -> None:
    words = "--mode line --components Elapsed --graphfile it.svg --ylabel s --logy --errorbars minmax Ext4 ext4:*.res"
    assert main(words.split()) == 0
    (block,) = rows("it.dat")
    assert all(float(low) < float(y) < float(high) for _, y, low, high in block)


def test_a_pattern_that_the_shell_saw_is_the_same() -> None:
    assert series_of(["Ext4", "ext4:1.res", "ext4:2.res", "ext4:4.res", "XFS", "xfs:1.res"]) == [
        ("Ext4", ["ext4:1.res", "ext4:2.res", "ext4:4.res"]),
        ("XFS", ["xfs:1.res"]),
    ]
    assert series_of(["Ext4", "ext4:*.res"]) == [("Ext4", ["ext4:1.res", "ext4:2.res", "ext4:4.res"])]


def test_widths_and_gaps_are_those_of_the_options() -> None:
    words = "-mode=bar -components=Elapsed,User -graphfile=it.svg -barwidth 2 -bargap 0.5 -groupgap 3"
    assert main([*words.split(), "A", "ext2:1.res", "B", "xfs:1.res"]) == 0
    elapsed, user = rows("it.dat")
    assert [row[0] for row in elapsed + user] == ["0", "11", "3", "14"]
    assert {row[3] for row in elapsed} == {"2"}


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, "-mode=bar -graphfile=x.eps A ext2:1.res", "--components is needed"),
        (2, "-components=Elapsed -graphfile=x.eps A ext2:1.res", "--mode is needed"),
        (2, "-mode=pie -components=Elapsed -graphfile=x.eps A ext2:1.res", "invalid choice: 'pie'"),
        (2, "-mode=bar -components=, -graphfile=x.eps A ext2:1.res", "--components names none"),
        (2, "-mode=bar -components=Mood -graphfile=x.eps A ext2:1.res", "metric 'Mood': "),
        (2, "-mode=bar -components=Elapsed -graphfile=x.ps A ext2:1.res", "x.ps: "),
        (2, "-mode=bar -components=Elapsed -graphfile=x.eps A", "name a series"),
        (3, "-mode=bar -components=Elapsed -graphfile=x.eps A ext9:*.res", "ext9:*.res: "),
        (2, "-mode=bar -components=Elapsed -graphfile=x.eps A ext2:1.res B", "graphit: B: "),
        (
            2,
            "-mode=bar -components=Elapsed -graphfile=x.eps A ext4:*.res",
            "there are 3: ext4:1, ext4:2, ext4:4",
        ),
        (
            2,
            "-mode=bar -components=Elapsed -graphfile=x.eps A ext2:1.res A xfs:1.res",
            "two series",
        ),
        (2, "-mode=bar -components=Elapsed -graphfile=x.eps -f huge A ext2:1.res", "'huge'"),
        (
            5,
            "-mode=bar -components=Elapsed -graphfile=/proc/x.eps A ext2:1.res",
            "/proc/x.eps: cannot be written",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    code: int, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == code
    error = capsys.readouterr().err
    assert error.startswith("graphit: ")
    assert said in error
    assert error.count("\n") == 1


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    from etude.cli.graphit import _parser

    assert main(["--help"]) == 0
    assert capsys.readouterr().out.split() == USAGE.split()
    for action in _parser()._actions:
        if action.option_strings:
            assert any(option in USAGE for option in action.option_strings)
    assert main(["-version"]) == 0


@given(st.text(max_size=20))
def test_any_place_of_a_key_is_known_or_refused(text: str) -> None:
    from argparse import ArgumentTypeError

    from etude.figures.draw import PLACES, TOGETHER

    try:
        found = key_place(text)
    except ArgumentTypeError:
        return
    assert found in PLACES or found in TOGETHER or found == "off"


@pytest.mark.parametrize(
    "place", ["top right", "right top", "left", "center", "Bottom", "centre left", "top center"]
)
def test_places_of_a_key_are_known(place: str) -> None:
    from etude.figures.draw import PLACES

    assert key_place(place) in PLACES
