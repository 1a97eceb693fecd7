"""The program `getstats`: what it prints, and how it ends."""

from __future__ import annotations

import csv
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.getstats import main
from etude.cli.main import main as etude
from support.builders import measurement, results_directory
from support.golden import Golden

Captured = pytest.CaptureFixture[str]

STEADY = (10.0, 10.1, 9.9, 10.05, 9.95)
SHAKY = (10.0, 5.0, 15.0, 12.0, 7.0)


def res(path: Path, elapsed: tuple[float, ...], user: float = 2.0) -> str:
    """A file with these trials, of two commands each, in the directory where the test runs."""
    lines = [
        f"[measurement]\nthread = 1\nepoch = {epoch}\ncommand = {command}\nuser = {user / 2}\nsys = 0.5\n"
        f"elapsed = {seconds / 2}\nstatus = 0\nfree = {epoch * 10} B\n"
        for epoch, seconds in enumerate(elapsed, 1)
        for command in ("tar", "make")
    ]
    path.write_text("[disk]\nhda\n" + "".join(lines))
    return path.name


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def steady(tmp_path: Path) -> str:
    return res(tmp_path / "ext2:1.res", STEADY)


@pytest.fixture
def shaky(tmp_path: Path) -> str:
    return res(tmp_path / "ext3:1.res", SHAKY, user=4.0)


def test_the_table_has_warnings_first_and_overheads_from_the_second_file_on(
    steady: str, shaky: str, capsys: Captured, golden: Golden
) -> None:
    assert main([steady, shaky]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][0] == "ext3:1.res:"
    assert {"elapsed", "1.020%."} <= set(lines[0])
    assert lines[1] == ["ext2:1.res"]
    elapsed = [line[1:] for line in lines if line[:1] == ["Elapsed"]]
    assert elapsed == [
        ["5", "10.000", "10.000", "9.902", "10.098", "9.900", "10.100", "0.791", "0.982"],
        ["5", "9.800", "10.000", "4.880", "14.720", "5.000", "15.000", "40.432", "50.203", "-2.000"],
    ]
    golden(out)


@pytest.mark.parametrize(
    ("expression", "files", "code"),
    [
        ('("$delta" < 0.05 * $mean) || ($count > 30)', ["ext2:1.res"], 0),
        ('("$delta" < 0.05 * $mean) || ($count > 30)', ["ext3:1.res"], 1),
        ('("$delta" < 0.05 * $mean) || ($count > 4)', ["ext3:1.res"], 0),
        ('("$delta" < 0.05 * $mean) || ($count > 30)', ["ext2:1.res", "ext3:1.res"], 1),
        ('"$name" eq "Elapsed" || $hw < 5', ["ext3:1.res"], 0),
    ],
)
@pytest.mark.usefixtures("steady", "shaky")
def test_a_predicate_is_answered_by_the_exit_code_and_nothing_else(
    expression: str, files: list[str], code: int, capsys: Captured
) -> None:
    assert main(["--predicate", expression, "--", *files]) == code
    assert capsys.readouterr() == ("", "")


def test_derived_columns_are_judged_only_when_named(shaky: str) -> None:
    assert main(["--predicate", '"$name" ne "Wait"', shaky]) == 0
    assert main(["--predicate", '"$name" ne "Wait"', "--columns", "Elapsed,Wait", shaky]) == 1
    assert main(["--predicate", "$max == 50", "--columns", "free", shaky]) == 0


def test_with_verbose_it_says_why(steady: str, shaky: str, capsys: Captured, golden: Golden) -> None:
    assert main(["--verbose", "--predicate", "$hw < 5", steady, shaky]) == 1
    out = capsys.readouterr().out
    first, second = out.splitlines()
    assert first.startswith("ext2:1.res: yes: ")
    assert second.startswith("ext3:1.res: no: elapsed: ± 50 % ")
    golden(out)


def test_the_confidence_is_that_of_delta(steady: str) -> None:
    expression = ["--predicate", "$hw < 1.2 && $confidencelevel > 90", "--columns", "elapsed", steady]
    assert main(expression) == 0
    assert main(["--confidence", "99", *expression]) == 1


def test_columns_choose_what_the_table_shows(steady: str, capsys: Captured) -> None:
    assert main(["--columns", "free,User", steady]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["NAME", "free", "User"]


def test_a_dump_has_the_rows_as_they_were_read(steady: str, capsys: Captured) -> None:
    assert main(["--dump", steady]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == steady
    assert lines[1].split() == ["epoch", "thread", "command", "user", "sys", "elapsed", "status", "free"]
    assert lines[2].split() == ["1", "1", "tar", "1", "0.5", "5", "0", "10"]
    assert len(lines) == 2 + 10


def test_csv_is_for_other_programs(steady: str, capsys: Captured) -> None:
    assert main(["--csv", steady]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert rows[0][:4] == ["FILE", "NAME", "COUNT", "MEAN"]
    assert rows[1][:4] == [steady, "Elapsed", "5", "10"]
    assert main(["--dump", "--csv", steady]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert rows[1] == ["1", "1", "tar", "1", "0.5", "5", "0", "10"]


def test_each_test_of_a_results_directory_has_its_table(tmp_path: Path, capsys: Captured) -> None:
    rows = {
        name: [
            measurement(name, trial, metrics={"elapsed": [s, "s"], "user": [0.5, "s"], "system": [0.25, "s"]})
            for trial, s in enumerate(STEADY, 1)
        ]
        for name in ("a", "b")
    }
    results_directory(tmp_path / "r", rows)
    assert main(["r"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "/" in line and "O/H" not in line] == ["r/a", "r/b"]
    assert main(["--predicate", "$count == 5", "r"]) == 0


def test_tables_of_other_programs_are_columns_of_numbers(
    tmp_path: Path, capsys: Captured, golden: Golden
) -> None:
    (tmp_path / "t.csv").write_text(
        "epoch,host,elapsed,odd,rate\n"
        + "".join(
            f"{epoch},box,{1 if epoch < 19 else 9},{epoch if epoch < 19 else 'x'},{epoch}\n"
            for epoch in range(10, 20)
        )
    )
    assert main(["t.csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("t.csv: Column odd ")
    assert "'x' in row 11" in lines[0]
    assert lines[1].endswith("elapsed in epoch 19.")
    assert {"t.csv:", "elapsed", "24.242%."} <= set(lines[2].split())
    golden("\n".join(lines))
    assert [line.split()[0] for line in lines[5:]] == ["Elapsed", "rate"]
    assert main(["--predicate", '$max == 9 && "$name" eq "Elapsed"', "t.csv"]) == 0
    assert main(["--predicate", "$max == 19", "--columns", "rate", "t.csv"]) == 0
    assert main(["--dump", "--csv", "t.csv"]) == 0
    assert capsys.readouterr().out == (tmp_path / "t.csv").read_text()


def test_auto_pilots_format_is_known_by_its_blocks_too(steady: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / steady).rename(tmp_path / "results.txt")
    assert main(["results.txt"]) == 0
    assert capsys.readouterr().out.startswith("results.txt\nNAME ")


def test_what_was_left_out_is_warned_of(
    steady: str, tmp_path: Path, capsys: Captured, golden: Golden
) -> None:
    with open(tmp_path / steady, "a") as file:
        file.write("[measurement]\nthread = 1\nepoch = 5\nelap")
    assert main([steady]) == 0
    lines = capsys.readouterr().out.splitlines()[:3]
    assert lines[0].startswith("ext2:1.res: Line 93: ")
    assert lines[1].startswith("ext2:1.res: Epoch 5 ")
    assert lines[2] == "ext2:1.res"
    golden("\n".join(lines))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "no file"),
        (["--nosuch"], 2, "unknown option --nosuch"),
        (["--predicate", "1 +", "ext2:1.res"], 2, "--predicate, column 4: "),
        (
            ["--predicate", "$dleta < 1", "ext2:1.res"],
            2,
            "--predicate, column 1: unknown variable $dleta",
        ),
        (["--predicate", "1 / ($count - 5)", "ext2:1.res"], 2, "column 3: division by zero"),
        (
            ["--predicate", "1", "--columns", "nosuch", "ext2:1.res"],
            2,
            "'nosuch'; it has elapsed",
        ),
        (["--columns", "nosuch", "ext2:1.res"], 2, "column 'nosuch'"),
        (["--predicate", "1", "x.csv"], 2, "no column elapsed, user, system"),
        (["--columns", "b", "x.csv"], 3, "column b: 'y' in row 2"),
        (["x.txt"], 3, "x.txt: "),
        (["missing.res"], 3, "missing.res: no results"),
        (["missing"], 3, f"missing: cannot be read: {os.strerror(errno.ENOENT)}"),
        (["."], 3, "experiment.json"),
        (["x" * 300], 3, os.strerror(errno.ENAMETOOLONG)),
        (["a\0b"], 3, "cannot be read"),
    ],
)
@pytest.mark.usefixtures("steady")
def test_what_goes_wrong_is_one_line_and_its_code(
    words: list[str], code: int, says: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,y\n")
    (tmp_path / "x.txt").write_text("nothing\n")
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("getstats: ")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("word", "begins"), [("--help", "usage: getstats"), ("--version", "getstats (Étude) ")]
)
def test_help_and_version_need_no_file(word: str, begins: str, capsys: Captured) -> None:
    assert main([word]) == 0
    assert capsys.readouterr().out.startswith(begins)


Program = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def program() -> Program:
    """The program as it is started by its name, with any standard output."""

    def start(*words: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", "from etude.cli.getstats import entry\nentry()", *words]
        return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False)

    return start


def test_the_program_ends_with_the_code(program: Program, steady: str, shaky: str) -> None:
    assert program("--predicate", "$hw < 5", steady).returncode == 0
    assert program("--predicate", "$hw < 5", shaky).returncode == 1
    assert program().returncode == 2


def test_a_reader_that_left_is_no_traceback(program: Program, steady: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = program(*[steady] * 500, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_one_line(program: Program, steady: str) -> None:
    with open("/dev/full", "w") as full:
        done = program(steady, stdout=full.fileno())
    assert done.returncode == 5
    assert done.stderr.startswith(b"getstats: ")
    assert done.stderr.endswith(f": {os.strerror(errno.ENOSPC)}\n".encode())
    assert done.stderr.count(b"\n") == 1


def test_etude_stats_reads_the_same_files(steady: str, capsys: Captured) -> None:
    assert etude(["stats", steady]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{steady}\n")
    assert ": 5 trials\n" in out
    assert "elapsed" in out
    assert etude(["stats", "missing.res"]) == 3
