"""Getstats from summaries in place of values: what they tell, and what they do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.analysis.getstats.options import Settings
from etude.analysis.getstats.summaries import read_summaries
from etude.cli.getstats import main
from etude.errors import InputError
from support.golden import Golden

Captured = pytest.CaptureFixture[str]

TIMES = """\
name,count,mean,sdev,min,max
Elapsed,10,6,0.1,5.75,6.1
System,10,2,0.1,1.9,2.1
User,10,1,0.05,0.95,1.05
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(text: str, capsys: Captured, *words: str) -> list[str]:
    Path("s.csv").write_text(text)
    assert main(["--from-summary", *words, "s.csv"]) == 0
    return capsys.readouterr().out.splitlines()


def test_what_a_summary_does_not_tell_is_a_dash(capsys: Captured, golden: Golden) -> None:
    score, wait, cpu, *rest = printed(TIMES, capsys)
    assert re.search(r" 2\.5 .*elapsed.* 5\.75\.$", score)
    assert "Wait" in wait
    assert "CPU%" in cpu
    golden("\n".join([score, wait, cpu]))
    assert rest == [
        "s.csv",
        "NAME     COUNT  MEAN MEDIAN   LOW  HIGH   MIN   MAX SDEV%   HW%",
        "Elapsed     10 6.000      - 5.928 6.072 5.750 6.100 1.667 1.192",
        "System      10 2.000      - 1.928 2.072 1.900 2.100 5.000 3.577",
        "User        10 1.000      - 0.964 1.036 0.950 1.050 5.000 3.577",
        "Wait        10 3.000      -     -     -     -     -     -     -",
        "CPU%        10     -      -     -     -     -     -     -     -",
    ]


def test_waiting_is_derived_only_from_times_of_as_many_runs(capsys: Captured) -> None:
    lines = printed(TIMES.replace("User,10", "User,9"), capsys)
    assert not [line for line in lines if line.startswith(("Wait", "CPU%"))]
    given_wait = printed(TIMES + "Wait,10,3,0.5,2,4\n", capsys)
    assert [line.split()[:3] for line in given_wait if line.startswith("Wait")] == [["Wait", "10", "3.000"]]


def test_the_confidence_and_the_threshold_are_those_asked_for(capsys: Captured) -> None:
    lines = printed(TIMES, capsys, "--confidence", "99", "--set", "zscore-thresh=3", "--columns", "Elapsed")
    assert lines[-1].split() == [
        "Elapsed",
        "10",
        "6.000",
        "-",
        "5.897",
        "6.103",
        "5.750",
        "6.100",
        "1.667",
        "1.713",
    ]
    assert not [line for line in lines if "z-score" in line]


@pytest.mark.parametrize(
    "text",
    [
        TIMES,
        TIMES.replace(",", "\t"),
        TIMES.replace(",", "   "),
        TIMES.replace("name", "Quantity").replace("sdev", "stddev"),
        "# a source\n\n" + TIMES,
        TIMES.replace("sdev", "sdev%").replace("0.1,5", "1.6666666666666667,5"),
    ],
)
def test_a_table_may_have_commas_tabs_or_blanks(text: str) -> None:
    Path("s").write_text(text)
    (source,) = read_summaries("s", Settings())
    elapsed = source.figures["Elapsed"]
    assert (source.label, elapsed.count, elapsed.mean, elapsed.minimum) == ("s", 10, 6.0, 5.75)
    assert elapsed.stddev == pytest.approx(0.1)


def test_tests_are_told_apart_by_name_and_quantity_or_by_the_line_above(capsys: Captured) -> None:
    named = "name,quantity,count,mean,sdev,min,max\na,x,5,1,0.1,0.9,1.1\nb,x,5,2,0.1,1.9,2.1\n"
    above = "a\nname count mean sdev min max\nx 5 1 0.1 0.9 1.1\n\nb\nname count mean sdev min max\nx 5 2 0.1 1.9 2.1\n"
    assert printed(named, capsys) == printed(above, capsys)
    assert printed(named, capsys)[-1].split()[-1] == "100.000"


def test_one_run_has_no_deviation(capsys: Captured) -> None:
    assert printed("name,count,mean,sdev,min,max\nx,1,2,0,2,2\n", capsys)[-1].split() == [
        *["x", "1", "2.000", "-", "-", "-", "2.000", "2.000", "-", "-"]
    ]
    assert printed("name,count,mean\nx,3,2\n", capsys)[-1].split() == ["x", "3", "2.000", *["-"] * 7]


def test_summaries_without_a_deviation_are_not_compared(capsys: Captured, golden: Golden) -> None:
    text = "name,quantity,count,mean\na,x,5,1\nb,x,5,2\nb,y,5,2\n"
    x, y = (line for line in printed(text, capsys, "--twosamplet") if ": - " in line)
    assert re.match(r"x: - \(.*\bnan\)$", x)
    assert re.match(r"y: - \(a .*\)$", y)
    Path("s.csv").write_text("name,quantity,count,mean,sdev\na,x,5,1,.1\nb,x,5,2,.1\n")
    assert main(["--from-summary", "--levene", "s.csv"]) == 0
    (levene,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("x: - ("))
    assert "Levene" in levene
    golden("\n".join([x, y, levene]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no summary"),
        ("a,b\n1,2\n", "no summary"),
        ("name,count,mean\nx,2\n", "line 2 .*2 .*3"),
        ("name,count,mean\nx,2,fast\n", "line 2: mean 'fast'"),
        ("name,count,mean\nx,2,inf\n", "line 2: mean 'inf'"),
        ("name,count,mean\nx,2.5,1\n", "x: count 2.5"),
        ("name,count,mean,sdev\nx,2,1,-1\n", "x: .*deviation"),
        ("name,count,mean,min,max\nx,2,1,2,3\n", "mean 1 .*min 2 .*max 3"),
        ("name,count,mean\nx,2,1\nx,2,1\n", "two rows .*x"),
        ("name,count,mean\n,2,1\n", "line 2 .*name"),
        ("\0", "zero byte"),
    ],
)
def test_a_wrong_summary_is_one_line(text: str, says: str, capsys: Captured) -> None:
    Path("s.csv").write_text(text)
    assert main(["--from-summary", "s.csv"]) == 3
    err = capsys.readouterr().err
    assert re.search(rf"\bs\.csv: .*{says}", err)
    assert err.count("\n") == 1
    assert main(["--from-summary", "missing"]) == 3
    assert "missing: " in capsys.readouterr().err


cells = st.sampled_from(
    ["name", "count", "mean", "sdev", "sdev%", "min", "max", "quantity", "x", "2", "1.5", "-", '"']
)
lines = st.lists(cells | st.text(max_size=4), max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lines, max_size=5), st.sampled_from([",", " ", "\t"]))
def test_any_table_is_read_or_refused(table: list[list[str]], between: str) -> None:
    Path("s").write_bytes("\n".join(between.join(line) for line in table).encode("utf-8", "surrogatepass"))
    try:
        sources = read_summaries("s", Settings())
    except InputError:
        return
    for source in sources:
        assert source.figures
