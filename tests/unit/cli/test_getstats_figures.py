"""The figures that the Auto-pilot paper prints come out of the command line, from the summaries in its figures."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.getstats import main as getstats
from etude.cli.main import main as etude
from support.places import DATA

GOLDEN = DATA / "autopilot-figures.csv"
SUMMARIES = {figure: DATA / f"autopilot-figure-{figure}.csv" for figure in ("2", "3")}

Program = Callable[[list[str]], int]
Printed = dict[tuple[str, str, str], list[str]]
"""File, quantity and statistic, by the names of the file of figures; all that is printed for it."""

PROGRAMS = {
    "getstats": getstats,
    "etude stats --style autopilot": lambda words: etude(["stats", "--style", "autopilot", *words]),
}
COLUMNS = {"MEAN": "mean", "LOW": "ci_low", "HIGH": "ci_high", "HW%": "halfwidth%", "O/H": "overhead%"}
TESTS = {"u1 <= u2": "p_u1>u2", "u1 >= u2": "p_u1<u2", "u1 == u2": "p_u1!=u2"}


def golden(*verdicts: str) -> list[dict[str, str]]:
    lines = [line for line in GOLDEN.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert len(rows) == 92
    return [row for row in rows if row["verdict"] in verdicts]


def to_reach() -> list[dict[str, str]]:
    rows = golden("exact", "rounding")
    return [row for row in rows if "_alt" not in row["statistic"] and row["statistic"] != "sdev%_from_ci"]


def read(out: str) -> Printed:
    """What a print-out says."""
    found: Printed = {}
    label, names, versus, quantity = "", [""], "", ""
    for line in out.splitlines():
        cells = line.split()
        if score := re.match(r"(\S+): High z-score of (\S+) for (\w+) at its", line):
            found.setdefault((score[1], score[3].capitalize(), "zscore"), []).append(score[2])
        elif cells[:2] == ["NAME", "COUNT"]:
            names = cells
        elif interval := re.match(r"(\S+): 95%CI for (\S+) - (\S+) = \((\S+), (\S+)\)", line):
            quantity, versus = interval[1], f"{interval[2]}-{interval[3]}"
            found[versus, quantity, "diff_ci_low"] = [interval[4]]
            found[versus, quantity, "diff_ci_high"] = [interval[5]]
        elif (null := line[:8]) in TESTS:
            found[versus, quantity, TESTS[null]] = [line[20:].split()[0]]
        elif len(cells) == 1:
            label = cells[0]
        elif len(cells) == len(names):
            for name, cell in zip(names, cells, strict=True):
                found[label, cells[0], COLUMNS.get(name, name)] = [cell]
    return found


def without(source: Path, directory: Path, *quantities: str) -> str:
    """The summaries of a figure without those of these quantities."""
    lines = source.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.split(",")[1:2] not in [[name] for name in quantities]]
    (directory / "times.csv").write_text("\n".join(kept) + "\n")
    return str(directory / "times.csv")


@pytest.fixture(params=PROGRAMS)
def printed(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Printed:
    """What the program prints of both figures; the means of Wait and CPU% from the times alone."""
    program: Program = PROGRAMS[request.param]
    assert program(["--from-summary", str(SUMMARIES["2"])]) == 0
    assert program(["--from-summary", "--twosamplet", str(SUMMARIES["3"])]) == 0
    found = read(capsys.readouterr().out)
    assert program(["--from-summary", without(SUMMARIES["2"], tmp_path, "Wait", "CPU%")]) == 0
    for place, cells in read(capsys.readouterr().out).items():
        if place[1] in ("Wait", "CPU%") and place[2] == "mean":
            found[place] = cells
    return found


def within(row: dict[str, str], cell: str) -> bool:
    """As far as the rounding of what the paper prints can tell, and half a last digit of ours."""
    half = 0.5 * 10.0 ** -len(cell.partition(".")[2])
    return float(row["lowest_by_rounding"]) - half <= float(cell) <= float(row["highest_by_rounding"]) + half


def test_every_figure_comes_out(printed: Printed) -> None:
    rows = to_reach()
    assert len(rows) == 62
    for row in rows:
        cells = printed[row["file"], row["quantity"], row["statistic"]]
        assert any(within(row, cell) for cell in cells), (row, cells)
        if row["verdict"] == "exact":
            assert [float(cell) for cell in cells] == [float(row["printed"])], row


def test_no_figure_of_a_formula_that_is_not_the_papers_comes_out(printed: Printed) -> None:
    rows = golden("NO")
    assert len(rows) == 12
    for row in rows:
        statistic = re.sub(r"_alt.*", "", row["statistic"])
        for cell in printed[row["file"], row["quantity"], statistic]:
            assert cell == "-" or not within(row, cell), (row, cell)


# Its dots are left out, the backslash of its typesetting, and the blank at the end of each line. The last column of the
# paper is wider, for the quantities that it omits.
FIGURE_3 = """\
chill
NAME    COUNT MEAN   MEDIAN LOW    HIGH   MIN    MAX    SDEV% HW%
Elapsed 10    38.649 38.193 37.950 39.348 37.673 40.379 2.528 1.808
System  10    1.663  1.675  1.603  1.723  1.540  1.770  5.071 3.628

remount
NAME    COUNT MEAN   MEDIAN LOW    HIGH   MIN    MAX    SDEV% HW%   O/H
Elapsed 10    38.751 38.699 38.580 38.921 38.465 39.307 0.614 0.439 0.262
System  10    1.796  1.790  1.677  1.915  1.580  2.080  9.255 6.620 7.998

Comparing remount (Sample 1) to chill (Sample 2).
Elapsed: 95%CI for remount - chill = (-0.567, 0.769)
Null Hyp. Alt. Hyp. P-value Result
u1 <= u2  u1 >  u2  0.377   ACCEPT H_0
u1 >= u2  u1 <  u2  0.623   ACCEPT H_0
u1 == u2  u1 != u2  0.754   ACCEPT H_0

System: 95%CI for remount - chill = (0.009, 0.257)
Null Hyp. Alt. Hyp. P-value Result
u1 <= u2  u1 >  u2  0.018   REJECT H_0
u1 >= u2  u1 <  u2  0.982   ACCEPT H_0
u1 == u2  u1 != u2  0.037   REJECT H_0
"""


def test_the_print_out_of_figure_3_comes_out_of_its_summaries(capsys: pytest.CaptureFixture[str]) -> None:
    assert getstats(["--from-summary", "--twosamplet", str(SUMMARIES["3"])]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if "z-score" not in line]
    paper = FIGURE_3.splitlines()
    number = re.compile(r"-?\d+\.\d{3}")
    assert [number.sub("#", line).rstrip() for line in lines] == [number.sub("#", line) for line in paper]
    assert all(line.endswith(" ") for line in lines if line.startswith(("NAME", "Elapsed ", "Null", "u1")))
    for ours, theirs in zip(lines, paper, strict=True):
        for a, b in zip(number.findall(ours), number.findall(theirs), strict=True):
            assert float(a) == pytest.approx(float(b), abs=0.0021)
    assert [line[-11:].rstrip() for line in lines if "H_0" in line] == [
        line[-10:] for line in paper if "H_0" in line
    ]


def test_the_print_out_can_be_read_again_as_summaries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Getstats' own layout, with blanks; LOW, HIGH and HW% are computed again."""
    assert getstats(["--from-summary", str(SUMMARIES["2"])]) == 0
    first = capsys.readouterr().out
    (tmp_path / "printed.txt").write_text(first)
    assert getstats(["--from-summary", str(tmp_path / "printed.txt")]) == 0
    assert capsys.readouterr().out == first
