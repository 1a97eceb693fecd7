"""The options of `getstats`: those that the papers print, and one line for what is none."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.getstats.options import GetstatsOptions, parse_getstats
from etude.analysis.transforms import Transform
from etude.errors import UsageError

FIGURE_1 = """getstats --predicate '("$delta" < 0.05 * $mean) || ($count > 30)'"""


def test_the_papers_stop_program_is_read() -> None:
    options = parse_getstats(shlex.split(FIGURE_1)[1:])
    assert options == GetstatsOptions(predicate='("$delta" < 0.05 * $mean) || ($count > 30)')
    assert options.judged == ("elapsed", "user", "system")


def test_every_option_has_its_place() -> None:
    words = [
        "--predicate=a=b",
        "x.res",
        "--columns",
        "Elapsed, io,peak_memory,sys,elapsed",
        "--confidence",
        "99",
    ]
    options = parse_getstats([*words, "--dump", "--csv", "--verbose", "--", "--dump", "-y"])
    assert options == GetstatsOptions(
        predicate="a=b",
        columns=("elapsed", "wait", "peak_memory", "system"),
        confidence=0.99,
        dump=True,
        csv=True,
        verbose=True,
        files=("x.res", "--dump", "-y"),
    )
    assert options.judged == ("elapsed", "wait", "peak_memory", "system")


def test_two_dashes_end_the_options_as_the_manuals_sample_has_it() -> None:
    assert parse_getstats(["--predicate", "1", "--"]) == GetstatsOptions(predicate="1")
    assert parse_getstats(["--predicate", "--", "--"]).predicate == "--"
    assert parse_getstats(["-"]).files == ("-",)


def test_options_of_a_file_stand_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("--select '$epoch > 2'  # not the first\n--set limit=3\n")
    options = parse_getstats(["--waitcpu", "--load", str(tmp_path / "more"), "--unifycommand", "a.res"])
    assert [each.name for each in options.transforms] == ["waitcpu", "select", "unifycommand"]
    assert options.transforms[1].arguments == ("$epoch > 2",)
    assert (options.variables, options.files) == ({"limit": 3.0}, ("a.res",))
    (tmp_path / "more").write_text(f"--load {tmp_path / 'more'}")
    (tmp_path / "torn").write_text("--select '$epoch")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("more", "torn", "absent", "bytes"):
        with pytest.raises(UsageError, match=f"{name}: (?!'utf)"):
            parse_getstats(["--load", str(tmp_path / name)])


def test_variables_are_computed_and_removed_in_order() -> None:
    words = ["--set", "a=3", "--setexpr", "b=2 * $a + 1", "--setexpr", 'c="$a of $b"', "--unset", "a"]
    assert parse_getstats(words).variables == {"b": 7.0, "c": "3 of 7"}
    for wrong in (["--unset", "a"], ["--setexpr", "a=$b"], ["--setexpr", "=1"]):
        with pytest.raises(UsageError, match=wrong[0]):
            parse_getstats(wrong)


def test_a_transform_may_need_a_column() -> None:
    options = parse_getstats(["--ifexist", "io", "--shift", "--project", "io", "--waitcpu"])
    assert options.transforms == (
        Transform("project", ("io",), shifted=True, if_exists="io"),
        Transform("waitcpu"),
    )
    with pytest.raises(UsageError, match="--ifexist"):
        parse_getstats(["--ifexist", "io"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nosuch"], "option --nosuch;.* --help"),
        (["-x"], r"option -x\b"),
        (["-xdump"], "option -xdump"),
        (["--predicate"], "--predicate .*value"),
        (["--dump=1"], "--dump .*no value"),
        (["--csv", "--csv"], "--csv .*twice"),
        (["--columns", "a,,b"], "--columns .*names"),
        (["--columns", ""], "--columns .*names"),
        (["--confidence", "x"], "--confidence .*1 and 100"),
        (["--confidence", "0.95"], "--confidence .*1 and 100"),
        (["--confidence", "100"], "--confidence .*1 and 100"),
        (["--confidence", "nan"], "--confidence .*1 and 100"),
    ],
)
def test_what_cannot_be_meant_is_an_error_of_usage(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_getstats(words)


def test_transforms_are_in_the_order_given_and_may_stand_more_than_once() -> None:
    words = ["--select", "1", "--shift", "--update=x=$a==2", "a.res", "--shift", "--csv"]
    options = parse_getstats([*words, "--set", "n=3", "--set=n=4", "--set", "regress-thresh=2"])
    assert options.transforms == (
        Transform("select", ("1",)),
        Transform("update", ("x=$a==2",), shifted=True),
        Transform("csv", (), shifted=True),
    )
    assert (options.dump, options.csv, options.files) == (False, False, ("a.res",))
    assert options.variables == {"n": 4.0, "regress-thresh": 2.0}
    assert options.settings.slope == 2.0


PIECES = [
    "--select",
    "--shift",
    "--set=a=1",
    "--warnrow",
    "--concat",
    "--twosamplet",
    "--from-summary",
    "--",
    "-",
    "--dump",
    "--csv",
    "--predicate",
    "--predicate=",
    "--columns=a",
    "--confidence",
    "95",
    "x",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=8))
def test_any_words_are_options_or_an_error_of_usage(words: list[str]) -> None:
    try:
        options = parse_getstats(words)
    except UsageError:
        return
    assert set(options.files) <= set(words)


def test_reading_them_loads_no_library_of_numbers() -> None:
    script = (
        "import sys\nfrom etude.analysis.getstats.options import parse_getstats\nparse_getstats(['--dump'])\n"
        "print(*{'numpy', 'scipy', 'orjson', 'rich', 'argparse'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
