"""Getstats' figures and tables: those of the Auto-pilot paper, number by number, in its layout."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.getstats.sources import tests_of as sources_of
from etude.analysis.getstats.tables import File, as_csv, file_of, judged, table
from etude.results.model import Measurement
from etude.results.results import Results
from etude.results.trials import trials_of_results
from support.builders import document, measurement, series_of_rows
from support.golden import Golden
from support.places import DATA

FIGURES = DATA / "autopilot-figures.csv"

FIGURE_2 = """\
ext2:1.res
NAME     COUNT   MEAN MEDIAN    LOW   HIGH    MIN    MAX SDEV%   HW%
Elapsed     10  6.055  6.063  5.991  6.120  5.855  6.180 1.491 1.067
System      10  2.758  2.760  2.709  2.807  2.640  2.880 2.499 1.788
User        10  1.675  1.680  1.615  1.735  1.510  1.820 5.044 3.609
Wait        10  1.622  1.636  1.567  1.677  1.465  1.718 4.759 3.404
CPU%        10 73.221 73.079 72.572 73.871 72.007 74.981 1.240 0.887

ext3:1.res
NAME     COUNT   MEAN MEDIAN    LOW   HIGH    MIN    MAX SDEV%   HW%      O/H
Elapsed     15 77.861 76.865 74.156 81.567 64.308 88.209 8.594 4.759 1185.869
System      15  4.272  4.290  4.217  4.327  4.100  4.410 2.334 1.293   54.895
User        15  1.825  1.820  1.773  1.877  1.670  1.990 5.132 2.842    8.935
Wait        15 71.765 70.775 68.064 75.466 58.158 82.179 9.312 5.157 4324.025
CPU%        15  7.885  7.923  7.499  8.272  6.836  9.563 8.850 4.901  -89.231
"""
# The numbers of figure 3, which prints them in another layout.
FIGURE_3 = """\
chill
NAME    COUNT   MEAN MEDIAN    LOW   HIGH    MIN    MAX SDEV%   HW%
Elapsed    10 38.649 38.193 37.950 39.348 37.673 40.379 2.528 1.808
System     10  1.663  1.675  1.603  1.723  1.540  1.770 5.071 3.628

remount
NAME    COUNT   MEAN MEDIAN    LOW   HIGH    MIN    MAX SDEV%   HW%   O/H
Elapsed    10 38.751 38.699 38.580 38.921 38.465 39.307 0.614 0.439 0.262
System     10  1.796  1.790  1.677  1.915  1.580  2.080 9.255 6.620 7.998
"""


class Printed(NamedTuple):
    """One line of a table."""

    count: int
    mean: float
    median: float
    low: float
    high: float
    minimum: float
    maximum: float
    sdev: float
    hw: float
    overhead: float | None = None


def printed(text: str) -> dict[tuple[str, str], Printed]:
    """The lines of a text with tables, by file and name."""
    found, label = {}, ""
    for line in text.splitlines():
        name, *cells = line.split() or [""]
        if not cells:
            label = name
        elif re.fullmatch(r"\d+", cells[0]):
            found[label, name] = Printed(int(cells[0]), *map(float, cells[1:]))
    return found


PAPER = printed(FIGURE_2) | printed(FIGURE_3)


def sample_like(line: Printed, sdev: float | None = None) -> list[float]:
    """Values with exactly this count, mean, deviation, least (the third) and greatest; the rest stand in between."""
    n = line.count
    spread = line.mean * (line.sdev if sdev is None else sdev) / 100.0
    ends = (line.minimum, line.maximum)
    centre = (n * line.mean - sum(ends)) / (n - 2)
    squares = (
        (n - 1) * spread**2 - sum((x - line.mean) ** 2 for x in ends) - (n - 2) * (centre - line.mean) ** 2
    )
    pairs = (n - 2) // 2
    away = math.sqrt(squares / (2 * pairs))
    rest = [centre + sign * away for _ in range(pairs) for sign in (1, -1)] + [centre] * (n % 2)
    return [*rest[:2], ends[0], ends[1], *rest[2:]]


def samples_of(text: str) -> list[tuple[str, dict[str, list[float]]]]:
    files: dict[str, dict[str, list[float]]] = {}
    for (label, name), line in printed(text).items():
        files.setdefault(label, {})[name] = sample_like(line)
    return list(files.items())


OURS = printed(table(samples_of(FIGURE_2))) | printed(table(samples_of(FIGURE_3)))

CELL = {"halfwidth%": "hw", "ci_low": "low", "ci_high": "high", "overhead%": "overhead"}


def recomputed() -> list[dict[str, str]]:
    lines = [line for line in FIGURES.read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def rows(*statistics: str, verdicts: Sequence[str] = ("exact", "rounding")) -> list[object]:
    found = [row for row in recomputed() if row["statistic"] in statistics and row["verdict"] in verdicts]
    return [pytest.param(row, id=f"{row['file']}-{row['quantity']}-{row['statistic']}") for row in found]


def within(row: dict[str, str], value: float) -> bool:
    """As far as the rounding of what the paper prints can tell; a cell has three decimals itself."""
    return float(row["lowest_by_rounding"]) - 0.0005 <= value <= float(row["highest_by_rounding"]) + 0.0005


@pytest.mark.parametrize("row", rows(*CELL))
def test_each_cell_is_the_papers(row: dict[str, str]) -> None:
    cell = getattr(OURS[row["file"], row["quantity"]], CELL[row["statistic"]])
    assert cell == round(float(row["recomputed"]), 3)
    assert within(row, cell)
    if row["verdict"] == "exact":
        assert cell == float(row["printed"])


def test_all_rows_of_the_figures_that_say_how_a_cell_is_made_are_tested() -> None:
    assert len(rows(*CELL)) == 49


@pytest.mark.parametrize("row", rows("sdev%_from_ci"))
def test_the_deviation_that_the_intervals_tell_gives_those_intervals(row: dict[str, str]) -> None:
    line = PAPER[row["file"], row["quantity"]]
    files = [("x", {"x": sample_like(line, sdev=float(row["recomputed"]))})]
    ours = printed(table(files))["x", "x"]
    assert ours.low == pytest.approx(line.low, abs=0.0011)
    assert ours.high == pytest.approx(line.high, abs=0.0011)
    assert within(row, ours.sdev)


@pytest.mark.parametrize("row", rows("halfwidth%_alt_n", "halfwidth%_alt_z", verdicts=["NO"]))
def test_no_cell_is_what_the_paper_does_not_print(row: dict[str, str]) -> None:
    assert not within(row, OURS[row["file"], row["quantity"]].hw)


def test_the_layout_is_that_of_figure_2() -> None:
    lines = [line for line in table(samples_of(FIGURE_2)).splitlines() if ": " not in line]
    shape = re.compile(r"\d")
    assert [shape.sub("0", line) for line in lines] == [
        shape.sub("0", line) for line in FIGURE_2.splitlines()
    ]


def test_warnings_of_high_scores_come_first_with_the_figures_value() -> None:
    (score,) = rows("zscore")
    (row,) = score.values  # type: ignore[attr-defined]
    first, second = table([*samples_of(FIGURE_2)[:1]]).splitlines()[:2]
    match = re.fullmatch(r"ext2:1\.res: .* (\d\.\d{14}) .*\belapsed\b.* 3\.", first)
    assert match is not None
    assert within(row, float(match[1]))
    for other in rows("zscore_alt_n", "zscore_alt_max", verdicts=["NO"]):
        assert not within(other.values[0], float(match[1]))  # type: ignore[attr-defined]
    assert "elapsed" not in second


def test_a_score_is_that_of_its_column_in_getstats_words_and_its_own_epoch(golden: Golden) -> None:
    values = [1.0] * 9 + [2.0]
    names = {"System": "sys", "User": "user", "Wait": "io", "CPU%": "cpu", "free": "free"}
    epochs = {name: range(11, 21) for name in names}
    lines = table([File("f", dict.fromkeys(names, values), epochs)]).splitlines()
    assert lines[5] == "f"
    for line, raw in zip(lines[:5], names.values(), strict=True):
        assert re.match(rf"f: .* 2\.84604989415154 .*\b{raw}\b.* 20\.$", line)
    golden("\n".join(lines[:5]))


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
def test_where_nothing_stands_out_there_is_no_warning(values: list[float]) -> None:
    assert table([("f", {"x": values})]).splitlines()[0] == "f"


def test_one_value_has_no_interval_and_a_new_column_no_overhead(golden: Golden) -> None:
    text = table([("a", {"x": [2.0], "y": [1.0, 1.0]}), ("b", {"x": [3.0], "z": [1.0, 2.0]})])
    x, y, longer, z = (line.split() for line in text.splitlines() if re.match("[xyz] ", line))
    assert x[4:6] == x[-2:] == ["-", "-"]
    assert y[-1] == "0.000"
    assert longer[-1] == "50.000"
    assert (z[4:6], z[-1]) == (["-4.853", "7.853"], "-")
    golden(text)


def test_the_confidence_widens_the_interval_only() -> None:
    at = {c: printed(table(samples_of(FIGURE_2)[:1], c))["ext2:1.res", "Elapsed"] for c in (0.95, 0.99)}
    assert at[0.99].hw / at[0.95].hw == pytest.approx(3.2498 / 2.2622, abs=1e-3)
    assert at[0.99].sdev == at[0.95].sdev


def test_the_same_figures_as_csv_have_all_their_digits() -> None:
    lines = list(
        csv.reader(as_csv([("a,b", {"x": [1.0, 2.0], "y": [3.0]}), ("c", {"x": [2.0, 4.0]})]).split("\n"))
    )
    assert lines[0] == [
        "FILE",
        "NAME",
        "COUNT",
        "MEAN",
        "MEDIAN",
        "LOW",
        "HIGH",
        "MIN",
        "MAX",
        "SDEV%",
        "HW%",
        "O/H",
    ]
    assert lines[1][:4] == ["a,b", "x", "2", "1.5"]
    assert lines[2] == ["a,b", "y", "1", "3", "3", "", "", "3", "3", "", "", ""]
    assert float(lines[3][-1]) == 100.0
    assert {len(line) for line in lines} == {12}


def trial(
    number: int, elapsed: float, system: float | None, user: float | None, **changes: object
) -> Measurement:
    values = {"elapsed": elapsed, "system": system, "user": user}
    metrics = {name: [value, "s"] for name, value in values.items() if value is not None}
    return measurement(trial=number, metrics=metrics, **changes)


def relation(rows: Sequence[Measurement]) -> dict[str, Sequence[float]]:
    return dict(file_of("", series_of_rows(rows)).samples)


def trials_like(label: str) -> list[Measurement]:
    columns = (sample_like(PAPER[label, name]) for name in ("Elapsed", "System", "User"))
    return [trial(number, *values) for number, values in enumerate(zip(*columns, strict=True), 1)]


@pytest.mark.parametrize("row", [param for param in rows("mean") if "Wait" in str(param)])
def test_the_mean_wait_is_what_system_and_user_leave_of_elapsed(row: dict[str, str]) -> None:
    waits = relation(trials_like(row["file"]))["Wait"]
    mean = sum(waits) / len(waits)
    assert mean == pytest.approx(float(row["recomputed"]), abs=1e-6)
    assert within(row, float(row["printed"]) if row["verdict"] == "exact" else mean)


@pytest.mark.parametrize("row", [param for param in rows("mean", verdicts=["NO"]) if "CPU%" in str(param)])
def test_the_mean_cpu_share_is_no_ratio_of_means(row: dict[str, str]) -> None:
    shares = relation(trials_like(row["file"]))["CPU%"]
    mean = sum(shares) / len(shares)
    assert not within(row, mean)
    assert mean == pytest.approx(float(row["printed"]), abs=0.02)


def test_a_relation_has_these_columns_in_this_order() -> None:
    found = relation([trial(1, 10.0, 1.0, 2.0), trial(2, 20.0, 4.0, 6.0)])
    assert list(found.items()) == [
        ("Elapsed", [10.0, 20.0]),
        ("System", [1.0, 4.0]),
        ("User", [2.0, 6.0]),
        ("Wait", [7.0, 10.0]),
        ("CPU%", [30.0, 50.0]),
    ]


def test_a_trial_is_one_row_whatever_its_threads_and_commands() -> None:
    rows = [
        measurement(worker=w, metrics={"elapsed": [e, "s"], "user": [1.0, "s"], "system": [0.5, "s"]})
        for w, e in ((0, 3.0), (0, 4.0), (1, 5.0))
    ]
    assert relation(rows) == {
        "Elapsed": [7.0],
        "System": [1.5],
        "User": [3.0],
        "Wait": [2.5],
        "CPU%": [pytest.approx(100 * 4.5 / 7.0)],
    }


def test_trials_that_are_not_kept_and_values_that_are_missing_are_left_out() -> None:
    trials = [
        trial(0, 9.0, 9.0, 9.0, kept=False, why="first run"),
        trial(1, 1.0, 0.25, 0.25),
        trial(2, 2.0, None, 0.5),
        trial(3, 0.0, 0.0, 0.0),
    ]
    assert relation(trials) == {
        "Elapsed": [1.0, 2.0, 0.0],
        "System": [0.25, 0.0],
        "User": [0.25, 0.5, 0.0],
        "Wait": [0.5, 0.0],
        "CPU%": [50.0],
    }
    assert file_of("f", series_of_rows(trials)).epochs["System"] == [1, 3]


def test_a_predicate_is_judged_on_our_names() -> None:
    trials = [trial(1, 10.0, 1.0, 2.0), trial(2, 20.0, 4.0, 6.0)]
    assert judged(series_of_rows(trials), ["elapsed", "sys", "CPU%", "nothing"]) == {
        "elapsed": [10.0, 20.0],
        "system": [1.0, 4.0],
        "cpu": [30.0, 50.0],
        "nothing": [],
    }


def test_failed_commands_and_trials_are_warned_of(golden: Golden) -> None:
    trials = [
        trial(0, 9.0, 9.0, 9.0, kept=False, why="first run"),
        trial(1, 1.0, 0.5, 0.5, exit_status=3, worker=1),
        trial(2, 1.0, 0.5, 0.5, exit_status=None, signal=9),
        trial(3, 1.0, 0.5, 0.5, kept=False, why="incomplete"),
    ]
    found = trials_of_results(Results(Path("f"), document(verb="res"), {"a": tuple(trials)}, ()))
    (source,) = sources_of("f", found)
    *warnings, label = table([source.shown(None)]).splitlines()[:4]
    assert label == "f"
    assert [re.findall(r"\d|SIG\w+|incomplete", line) for line in warnings] == [
        ["2", "3", "1"],
        ["1", "SIGKILL", "2"],
        ["3", "incomplete"],
    ]
    golden("\n".join(warnings))


values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8)


@given(
    st.lists(st.tuples(st.just("f"), st.dictionaries(st.sampled_from("xyz"), values)), min_size=1, max_size=3)
)
def test_any_samples_make_a_table_whose_lines_are_of_one_length(
    files: list[tuple[str, dict[str, list[float]]]],
) -> None:
    for part in table(files).split("\n\n"):
        lines = [line for line in part.splitlines() if not line.startswith("f: ")]
        assert len({len(line) for line in lines[1:]}) == 1
