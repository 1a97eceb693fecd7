"""Transforms as options of `getstats`: in the order given, before and after the readpass."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.cli.getstats import main
from support.builders import measurement, results_directory
from support.golden import Golden
from support.places import DATA
from support.profiles import examples

Captured = pytest.CaptureFixture[str]
READERS = DATA / "readers"


def res(name: str, elapsed: tuple[float, ...], free: int = 0) -> str:
    """Epochs of two threads that run tar and make; the second takes 1 s longer, and fails in epoch 3."""
    lines = [
        f"[measurement]\nthread = {thread}\nepoch = {epoch}\ncommand = {command}\nuser = 1.0\nsys = 0.25\n"
        f"elapsed = {seconds / 2 + (thread - 1) * 0.5}\nstatus = {int(epoch == 3 and thread == 2)}\n"
        f"free = {1000 + epoch * free} B\n"
        for epoch, seconds in enumerate(elapsed, 1)
        for thread in (1, 2)
        for command in ("tar", "make")
    ]
    Path(name).write_text("[disk]\nhda\n" + "".join(lines))
    return name


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    res("a.res", (9.0, 9.1, 8.9, 9.05, 8.95))
    res("b.res", (19.0, 18.0, 21.0, 17.0, 20.0))


@pytest.fixture
def shows(capsys: Captured) -> Callable[..., list[str]]:
    """The lines that getstats prints, all being well."""

    def call(*words: str) -> list[str]:
        assert main(words) == 0
        return capsys.readouterr().out.splitlines()

    return call


Shows = Callable[..., list[str]]


def numbers(line: str) -> list[str]:
    return re.findall(r"\d+", line)


def test_a_transform_that_changes_nothing_leaves_all_as_it_was(shows: Shows, golden: Golden) -> None:
    assert shows("--select", "1", "a.res", "b.res") == shows("a.res", "b.res")
    assert list(map(numbers, shows("a.res")[:2])) == [["2", "1", "3"]] * 2, "thread, status, epoch"
    assert "Elapsed      5 10.000 10.000  9.902 10.098  9.900 10.100 0.791 0.982" in shows("a.res")
    golden("\n".join(shows("a.res")))


def test_a_shifted_transform_comes_before_commands_and_threads_are_joined(shows: Shows) -> None:
    lines = shows(
        "--shift", "--select", '$command eq "make" && $thread == 1', "--columns", "elapsed", "a.res"
    )
    assert lines[-1].split()[:3] == ["Elapsed", "5", "4.500"]
    assert "ended with" not in lines[0]
    assert main(["--select", "$thread == 2", "a.res"]) == 0  # after the joining there is one thread
    warning, heading, _ = shows("--select", "$thread == 2", "a.res")[-3:]
    assert warning.startswith("a.res: No row ")
    assert heading == "a.res"


def test_transforms_are_done_in_the_order_given(shows: Shows) -> None:
    words = ["--update", "x=$elapsed", "--select", "$x > 9.97", "--update", "x=10 * $x"]
    lines = shows(*words, "--columns", "x", "a.res")
    assert lines[-1].split()[:3] == ["x", "3", "100.500"]
    assert shows("--update", "x=$elapsed", "--update", "x=10 * $x", "--select", "$x > 9.97", "a.res")[
        -1
    ].split()[:2] == [
        "x",
        "5",
    ]


def test_computed_columns_are_shown_behind_the_usual_ones(shows: Shows) -> None:
    lines = shows("--update", "per_run:1/s=1/$elapsed", "a.res")
    assert [line.split()[0] for line in lines[-6:]] == [
        "Elapsed",
        "System",
        "User",
        "Wait",
        "CPU%",
        "per_run",
    ]
    lines = shows("--project", "epoch,io,free", "a.res")
    assert [line.split()[0] for line in lines[-3:]] == ["NAME", "Wait", "free"]
    assert shows("--rename", "elapsed=real", "--columns", "real", "a.res")[-1].startswith("real ")


def test_the_rows_can_be_printed_at_any_place(shows: Shows, golden: Golden) -> None:
    lines = shows("--select", "$epoch <= 1", "--dump", "a.res")
    assert lines[0] == "a.res"
    assert lines[2].split() == ["1", "1", "tar;", "make", "0", "4", "1", "10", "1000", "5", "50"]
    golden("\n".join(lines))
    raw = shows("--shift", "--select", "$epoch == 1", "--shift", "--dump", "a.res")
    assert len(raw) == 2 + 4
    assert raw[2].split() == ["1", "1", "tar", "0", "1", "0.25", "4.5", "1000"]
    rows = list(
        csv.reader(shows("--select", "$epoch < 3", "--project", "epoch,elapsed", "--csv", "--dump", "a.res"))
    )
    assert rows == [["epoch", "elapsed"], ["1", "10"], ["2", "10.1"]]


def test_without_the_standard_transforms_the_rows_are_printed(shows: Shows) -> None:
    lines = shows(
        "--nostdtransforms", "--exitfail", "--select", "$epoch == 3", "--project", "thread,elapsed", "a.res"
    )
    assert list(map(numbers, lines[:2])) == [["2", "1", "3"]] * 2
    assert lines[2:] == [
        "a.res",
        "thread  elapsed",
        "1          4.45",
        "1          4.45",
        "2          4.95",
        "2          4.95",
    ]
    assert shows("--no-stdtransforms", "a.res") == shows("--dump", "--nostdtransforms", "a.res")
    joined = shows("--nostdtransforms", "--unifycommand", "--waitcpu", "--project", "elapsed,io,cpu", "a.res")
    assert joined[2].split() == ["10", "5", "50"]
    threads = shows("--nostdtransforms", "--aggthreads", "--project", "command,elapsed", "a.res")
    assert threads[2].split() == ["tar", "5"]


QUOTED = 'sh -c "make -j2" > log'


def test_a_select_by_the_text_of_a_command_finds_it(shows: Shows) -> None:
    text = Path("a.res").read_text().replace("command = make", f"command = {QUOTED}")
    Path("q.res").write_text(text)
    words = ["--shift", "--select", f"$command eq '{QUOTED}'", "--columns", "elapsed"]
    assert shows(*words, "q.res")[-1].split()[:3] == ["Elapsed", "5", "5.000"]
    assert any(QUOTED in line for line in shows("--dump", "q.res"))
    assert any(QUOTED in line for line in shows("--shift", "--dump", "q.res"))


@pytest.mark.parametrize(
    "words", [[], ["--shift", "--group", "thread"], ["--dump"], ["--csv"], ["--nostdtransforms"]]
)
def test_a_select_that_leaves_nothing_says_so(words: list[str], capsys: Captured) -> None:
    assert main(["--shift", "--select", '$command eq "cc"', *words, "a.res", "b.res"]) == 0
    out, err = capsys.readouterr()
    said = [line for line in (out + err).splitlines() if "--select" in line]
    assert [line.partition(".res: ")[0][-1] for line in said] == ["a", "b"]
    assert all("'tar', 'make'" in line for line in said), "what there is"
    assert main(["--shift", "--select", '$command eq "cc"', "--predicate", "1", "a.res"]) == 1
    assert "--select" in capsys.readouterr().err


def test_groups_have_a_table_each(shows: Shows) -> None:
    lines = shows("--shift", "--group", "command", "--columns", "elapsed", "--set", "warn=0", "a.res")
    assert [line for line in lines if "=" in line] == ["a.res (command=tar)", "a.res (command=make)"]
    assert lines[-1].split() == ["Elapsed", "5", *["5.000"] * 2, *lines[-1].split()[4:-1], "0.000"]


def test_aggregates_are_by_their_functions(shows: Shows) -> None:
    lines = shows("--aggregate", "elapsed=mean,user=max", "--dump", "a.res")
    assert lines[1:] == ["elapsed  user", "10          4"]
    lines = shows("--shift", "--aggregate", "thread,command:elapsed=max", "--dump", "a.res")
    assert [line.split() for line in lines[1:3]] == [["thread", "command", "elapsed"], ["1", "tar", "4.55"]]


def test_inputs_are_made_one_relation(shows: Shows) -> None:
    lines = shows("--concat", "--columns", "elapsed", "--set", "warn=0", "a.res", "b.res")
    assert lines[0] == "a.res + b.res"
    assert lines[-1].split()[:3] == ["Elapsed", "10", "15.000"]
    lines = shows("--concat", "--select", '$file eq "b.res"', "--columns", "elapsed", "a.res", "b.res")
    assert lines[-1].split()[:3] == ["Elapsed", "5", "20.000"]


@pytest.mark.parametrize("words", [["--concat"], ["--concat", "--shift", "--group", "file"]])
def test_a_warning_of_joined_files_names_the_one(words: list[str], shows: Shows) -> None:
    Path("good.res").write_text(Path("a.res").read_text().replace("status = 1", "status = 0"))
    res("high.res", (9.0, 9.1, 8.9, 9.05, 30.0))
    lines = shows(*words, "--set", "zscore-thresh=1.5", "good.res", "high.res")
    failed = [line for line in lines if "ended with" in line]
    assert [line.rpartition(": ")[2].split()[-4:] for line in failed] == [
        ["epoch", "3", "of", "high.res."]
    ] * 2
    high = [line for line in lines if "z-score" in line]
    assert {tuple(line.split()[-4:]) for line in high} == {("epoch", "5", "of", "high.res.")}


def test_a_warning_stays_with_what_it_was_raised_of(shows: Shows) -> None:
    for words in (["--group", "epoch"], ["--update", "late=$epoch > 3", "--group", "late"]):
        failed = [line for line in shows(*words, "a.res") if "ended with" in line]
        assert [line.partition(": ")[0] for line in failed] == ["a.res"] * 2, "no group: it came before"
    Path("broken.res").write_text(Path("a.res").read_text() + "[measurement]\nepoch = x\nstatus = 0\n")
    (left_out,) = [line for line in shows("--concat", "a.res", "broken.res") if "left out" in line]
    assert left_out.startswith("broken.res: ")


def test_a_row_whose_epoch_is_not_known_is_no_epoch(shows: Shows) -> None:
    res("high.res", (9.0, 9.1, 8.9, 9.05, 30.0))
    words = ["--set", "zscore-thresh=1.1", "--select", "$epoch > 2", "--project"]
    assert any("z-score" in line and line.endswith("row 3.") for line in shows(*words, "elapsed", "high.res"))
    lines = shows(*words, "epoch,elapsed", "high.res")
    assert any("z-score" in line and line.endswith("epoch 5.") for line in lines)


def test_threads_count_from_one_in_the_names_of_groups(shows: Shows) -> None:
    lines = shows("--shift", "--group", "thread", "--columns", "elapsed", "a.res")
    assert [line for line in lines if line.endswith(")")] == ["a.res (thread=1)", "a.res (thread=2)"]


def test_one_file_twice_is_two_runs_of_each_epoch(shows: Shows) -> None:
    lines = shows("--concat", "--columns", "elapsed", "--set", "warn=0", "a.res", "a.res")
    assert lines[-1].split()[:3] == ["Elapsed", "10", "10.000"]


def test_a_column_that_is_not_all_numbers_is_text_and_said(shows: Shows) -> None:
    Path("n.csv").write_text("a,b\n1,2\n3,x\n")
    lines = shows("--select", '$b ne "2"', "n.csv")
    assert lines[0].startswith("n.csv: Column b ")
    assert "'x' in row 3" in lines[0]
    assert lines[-1].split()[:3] == ["a", "1", "3.000"]


def test_warnings_of_the_users_own_and_echoes(shows: Shows) -> None:
    words = [
        "--warnrow",
        "$elapsed > 21",
        "slow, $elapsed s in epoch $epoch",
        "--warncol",
        "$sdev > 5",
        "$name varies",
    ]
    lines = shows(
        *words,
        "--warnval",
        '$raw eq "user" && $value > 0',
        "user $value",
        "--echo",
        "$fileno of $filecount",
        "b.res",
    )
    assert lines[0] == "0 of 1"
    assert "b.res: slow, 22 s in epoch 3" in lines
    assert [line for line in lines if line.endswith("varies")] == [
        f"b.res: {name} varies" for name in ("Elapsed", "Wait", "CPU%")
    ]
    assert len([line for line in lines if line == "b.res: user 4"]) == 5
    lines = shows(
        "--set",
        "limit=21",
        "--warnrow",
        "$elapsed > $limit",
        "over $limit",
        "--warnz",
        "--warnregress",
        "b.res",
    )
    assert "b.res: over 21" in lines


def test_values_are_printed_and_what_may_not_be_ends_all(shows: Shows, capsys: Captured) -> None:
    words = ["--setexpr", "half=21 / 2", "--eval", "$half + $filecount", "--eval", '"$file has $half"']
    assert shows(*words, "b.res")[:2] == ["11.5", "b.res has 10.5"]
    assert main(["--die", "$elapsed > 21", "epoch $epoch took $elapsed s", "a.res", "b.res"]) == 3
    assert capsys.readouterr() == ("", "getstats: b.res: epoch 3 took 22 s\n")
    assert shows("--die", "$elapsed > 99", "slow", "a.res") == shows("a.res")


def test_a_transform_is_done_where_there_is_its_column(shows: Shows) -> None:
    Path("t.csv").write_text("a,b\n1,2\n3,4\n")
    only = ["--ifexist", "b", "--select", "$b > 2", "--dump", "--csv"]
    assert shows(*only, "t.csv") == ["a,b", "3,4"]
    assert shows(*only, "a.res") == shows("--dump", "--csv", "--select", "1", "a.res")


def test_thresholds_can_be_set(shows: Shows, golden: Golden) -> None:
    res("leak.res", (9.0, 9.1, 8.9, 9.05, 8.95), free=-20)
    # Though the table does not show free memory:
    (leak,) = [line for line in shows("leak.res") if " free " in line]
    assert {"leak.res:", "-2.128%."} <= set(leak.split())
    assert leak in shows("--select", "1", "leak.res")
    assert leak not in shows("--set", "regress-thresh=3", "leak.res")
    res("grows.res", (9.0, 9.1, 8.9, 9.05, 8.95), free=20)
    assert not [line for line in shows("grows.res") if "slope" in line]
    assert not any("z-score" in line for line in shows("a.res"))
    high = [line for line in shows("--set", "zscore-thresh=1.2", "a.res") if "z-score" in line]
    assert any({"a.res:", "1.26491106406735", "elapsed", "2."} <= set(line.split()) for line in high)
    golden("\n".join([leak, *high]))
    assert "ended with" not in shows("--set", "warn=0", "a.res")[0]
    assert shows("--set", "precision=1", "--columns", "elapsed", "a.res")[-1].split() == [
        *["Elapsed", "5", "10.0", "10.0", "9.9", "10.1", "9.9", "10.1", "0.8", "1.0"]
    ]
    assert shows("--set", "confidencelevel=99", "a.res") == shows("--confidence", "99", "a.res")


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("interval", "9.902", "10.098"), ("minmax", "9.900", "10.100"), ("deviation", "9.921", "10.079")],
)
def test_error_bars_are_of_the_kind_asked_for(kind: str, low: str, high: str, shows: Shows) -> None:
    line = shows("--errorbars", kind, "--columns", "elapsed", "a.res")[-1]
    assert line.split()[4:6] == [low, high]


def test_the_readpass_takes_the_mean_of_the_trials_own_shares(shows: Shows) -> None:
    Path("t.res").write_text(
        "".join(
            f"[measurement]\nthread = 1\nepoch = {epoch}\nuser = 1\nsys = 1\nelapsed = {elapsed}\nstatus = 0\n"
            for epoch, elapsed in ((1, 4), (2, 20))
        )
    )
    for words in ([], ["--select", "1"]):
        assert shows(*words, "t.res")[-1].split()[:3] == [
            "CPU%",
            "2",
            "30.000",
        ]  # the ratio of means is 16.667


def test_a_predicate_is_judged_on_what_the_transforms_leave() -> None:
    assert main(["--select", "$epoch <= 2", "--predicate", "$count == 2", "a.res"]) == 0
    assert main(["--select", "$epoch <= 2", "--predicate", "$count == 5", "a.res"]) == 1
    assert main(["--nostdtransforms", "--predicate", "$count == 20", "a.res"]) == 0


def test_own_results_and_tables_are_transformed_too(tmp_path: Path, shows: Shows) -> None:
    metrics = {"user": [0.5, "s"], "system": [0.25, "s"]}
    rows = {
        name: [measurement(name, t, metrics={"elapsed": [1.0 + t, "s"], **metrics}) for t in (1, 2, 3)]
        for name in ("a", "b")
    }
    results_directory(tmp_path / "r", rows)
    lines = shows("--select", "$epoch > 1", "r")
    assert [line for line in lines if line in ("r/a", "r/b")] == ["r/a", "r/b"]
    assert ["Elapsed", "2", "3.500", "3.500", "-2.853", "9.853"] in [line.split()[:6] for line in lines]
    Path("t.csv").write_text("epoch,host,elapsed\n1,x,2.5\n2,y,3.5\n3,y,4.5\n")
    lines = shows("--select", '$host eq "y"', "t.csv")
    assert lines[-1].split()[:3] == ["Elapsed", "2", "4.000"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("autopilot.res", "Elapsed"),
        ("etude-results.jsonl", "Elapsed"),
        ("getstats-dump.txt", "CPU%"),
        ("table.tsv", ""),
        ("time-v.txt", "User"),
        ("postmark-verbose.txt", "read_throughput"),
        ("hyperfine-1.json", "Elapsed"),
        ("hyperfine-summaries.json", "Elapsed"),
        ("pyperf.json", ""),
        ("pytest-benchmark.json", ""),
        ("pytest-benchmark-summaries.json", ""),
        ("asv.json", ""),
        ("google-benchmark.json", ""),
        ("go.txt", ""),
        ("github-action-benchmark-data.js", ""),
        ("fio.json", "write_iops"),
        ("pgbench-summary.txt", ""),
        ("sysbench-cpu.txt", ""),
        ("perf-x-repeated.csv", ""),
        ("filebench-1.5.txt", ""),
    ],
)
def test_every_format_that_etude_reads_has_its_tables(name: str, says: str, shows: Shows) -> None:
    lines = shows(str(READERS / name))
    assert any(line.startswith("NAME ") for line in lines)
    assert any(line.startswith(says) for line in lines)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--shift", "a.res"], 2, "--shift lacks"),
        (["--select"], 2, "--select lacks"),
        (["--warnrow", "1"], 2, "--warnrow needs 2 values"),
        (["--unifycommand=1", "a.res"], 2, "--unifycommand takes no value"),
        (["--select", "$elapsed >", "a.res"], 2, "--select, column 11: "),
        (
            ["--select", "$elapse > 1", "a.res"],
            2,
            "--select, column 1: unknown variable $elapse,",
        ),
        (["--select", "1 / ($epoch - 2)", "a.res"], 2, "--select, column 3: row 2: division by zero"),
        (["--select", "$command + 1", "a.res"], 2, "row 1: + needs a number, and 'tar; make'"),
        (
            ["--project", "nosuch", "a.res"],
            2,
            "no column 'nosuch'; there are test, trial",
        ),
        (["--rename", "elapsed", "a.res"], 2, "--rename 'elapsed': "),
        (["--rename", "user=elapsed", "a.res"], 2, "'elapsed' already"),
        (["--update", "elapsed", "a.res"], 2, "--update 'elapsed': "),
        (["--aggregate", "elapsed=avg", "a.res"], 2, "no function avg"),
        (["--set", "limit", "a.res"], 2, "--set limit: "),
        (["--set", "precision=x", "a.res"], 2, "--set precision=x: "),
        (["--echo", "$nosuch", "a.res"], 2, "--echo, column 1: unknown variable $nosuch"),
        (["--concat", "a.res", "t.csv"], 2, "--concat: a.res and t.csv differ"),
        (
            ["--twosamplet", "a.res"],
            2,
            "--twosamplet compares",
        ),
        (
            ["--ftest", "--levene", "a.res"],
            2,
            "--ftest and --levene",
        ),
        (["--from-summary", "--select", "1", "a.res"], 2, "--from-summary has no rows"),
        (
            ["--select", "1", "--columns", "nosuch", "a.res"],
            2,
            "no column 'nosuch'; it has user, system",
        ),
        (["--select", "1", "--columns", "command", "a.res"], 3, "column command: "),
        (["--select", "1", "missing"], 3, "missing: cannot be read"),
        (["--select", "1", str(READERS / "hyperfine-summaries.json")], 3, "holds summaries"),
        (["--predicate", "1", str(READERS / "hyperfine-summaries.json")], 2, "holds summaries"),
        (
            ["--dump", str(READERS / "hyperfine-summaries.json")],
            2,
            "holds summaries",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line(words: list[str], code: int, says: str, capsys: Captured) -> None:
    Path("t.csv").write_text("a,b\n1,2\n")
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("getstats: ")
    assert err.count("\n") == 1
    assert says in err


def test_two_samples_are_compared_as_figure_3_has_it(shows: Shows, golden: Golden) -> None:
    lines = shows("--twosamplet", "--columns", "elapsed,user", "a.res", "b.res")
    begin = next(n for n, line in enumerate(lines) if line.startswith("Comparing b.res "))
    assert numbers(lines[begin + 1])[-4:] == ["8", "367", "11", "633"]
    tests = {line[:8]: line.split()[-3:-1] for line in lines if " H_0" in line}
    assert tests == {
        "u1 <= u2": ["0.000", "REJECT"],
        "u1 >= u2": ["1.000", "ACCEPT"],
        "u1 == u2": ["0.000", "REJECT"],
    }
    assert lines[-1].startswith("User: -")
    by = {name: shows(f"--{name}", "--columns", "elapsed", "a.res", "b.res") for name in ("ftest", "levene")}
    ((ftest,), (levene,)) = ([line for line in by[name] if "test of" in line] for name in by)
    assert "F = 400.000," in ftest
    assert " 4.0 " in ftest
    assert levene.startswith("Levene")
    assert not any("test of" in line for line in lines)
    golden("\n".join([*lines[begin:], ftest, levene]))


OPTIONS = (
    "select",
    "update",
    "group",
    "project",
    "aggregate",
    "rename",
    "warnrow",
    "echo",
    "shift",
    "concat",
)
FLAGS = ("dump", "csv", "unifycommand", "waitcpu", "aggthreads", "describe", "nostdtransforms", "twosamplet")
VALUES = ("$elapsed > 9", "1", "epoch", "elapsed", "x=1", "elapsed=max", "elapsed=e", "a.res", "b.res", "--")
words = st.sampled_from([*(f"--{name}" for name in (*OPTIONS, *FLAGS)), *VALUES])


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, max_size=8))
def test_any_words_are_answered_or_refused_in_one_line(capsys: Captured, given_words: list[str]) -> None:
    code = main(given_words)
    out, err = capsys.readouterr()
    assert (code, bool(out), err) == (0, True, "") or (code in (2, 3) and err.count("\n") == 1)


@pytest.mark.parametrize("transforms", [(), ("--select", "1")])
def test_a_column_of_which_no_trial_has_a_value_is_named(shows: Shows, transforms: tuple[str, ...]) -> None:
    metrics = {"elapsed": [1.0, "s"], "p99": [0.5, "s"]}
    rows = [measurement(worker=n, rows=2, metrics=metrics) for n in (0, 1)]
    results_directory(Path("r"), {"a": rows})
    columns = ("--columns", "elapsed,p99")
    assert any("p99" in line for line in shows(*transforms, *columns, "r"))
    assert not any("p99" in line for line in shows(*transforms, "--columns", "elapsed", "r"))


def test_blanks_of_a_command_stay_in_the_line_of_an_error(capsys: Captured) -> None:
    from etude.cli.main import main as etude

    Path("c.res").write_text(
        "[measurement]\nthread = 1\nepoch = 1\ncommand = run  twice\nuser = 1\nsys = 1\nelapsed = 3\nstatus = 0\n"
    )
    assert etude(["stats", "--select", '$command eq "x"', "c.res"]) == 2
    assert "'run  twice'" in capsys.readouterr().err
