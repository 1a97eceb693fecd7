"""`etude profile` and `etude script --events`, on an imported trace and on one of the real recorder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.cli.main import main
from etude.program import engine_path
from support.traces import CALLS, COPY, imported

PROGRAM = """
import os
descriptor = os.open("data", os.O_RDWR | os.O_CREAT, 0o600)
for _ in range(8):
    os.write(descriptor, bytes(4096))
for block in (5, 1, 3):
    os.pread(descriptor, 4096, 4096 * block)
copy = os.dup(descriptor)
child = os.fork()
if child == 0:
    os.pwrite(copy, b"x" * 100, 0)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return imported(COPY, tmp_path / "copy.trace")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """What the real recorder wrote of PROGRAM."""
    command = [engine_path(), "record", "-q", "-o", "real.trace", "--", sys.executable, "-c", PROGRAM]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 5:
        pytest.skip(f"programs cannot be recorded here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return tmp_path / "real.trace"


def etude(*words: str) -> subprocess.CompletedProcess[str]:
    """As a program of its own: `script` becomes the engine."""
    command = [sys.executable, "-m", "etude.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_profile_says_what_calls_files_and_processes_there_are(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(path)]) == 0
    said = capsys.readouterr().out
    for text in (
        "Program: copy in out",
        "29 calls of 2 processes",
        "61.00 ms",
        "60 % of 5 ",
        "1 ENOENT",
        "/data/dir/below",
        "(pipe)",
        "over time",
    ):
        assert text in said
    rows = [line.split()[0] for line in said.splitlines() if line.startswith(" ") and line.split()]
    assert rows.index("read") < rows.index("write") < rows.index("pread64")


def test_the_tables_are_as_long_as_is_asked(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(path), "--top", "1"]) == 0
    said = capsys.readouterr().out
    assert "and 11 more calls" in said
    assert "and 10 more files" in said
    assert "/data/in" not in said


def test_json_is_all_that_stands_on_standard_output(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(path), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["events"], made["calls"]["openat"]["errors"], len(made["files"])) == (CALLS, 1, 11)


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_a_figure_is_drawn(path: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    assert main(["profile", str(path), "--figure", f"x.{suffix}"]) == 0
    assert f"Figure: x.{suffix}" in capsys.readouterr().out
    assert Path(f"x.{suffix}").stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["nosuch"], 3, "etude: nosuch: "),
        (["short"], 3, "etude: short: "),
        (["other"], 3, "etude: other: "),
        (["nosuch", "--figure", "x.gif"], 2, "x.gif: "),
        (["copy.trace", "--figure", "no/where.pdf"], 5, "no/where.pdf: cannot be written"),
        (["copy.trace", "--top", "0"], 2, "--top: "),
        (["copy.trace", "nosuch"], 3, "etude: nosuch: "),
        (["copy.trace", "short"], 3, "etude: short: "),
        (["copy.trace", "copy.trace", "--roll", "nosuch"], 3, "etude: nosuch: "),
        (["copy.trace", "copy.trace", "--script", "other"], 3, "etude: other: "),
        (["copy.trace", "--roll", "copy.trace"], 2, "--script and --roll"),
    ],
)
def test_what_cannot_be_profiled_is_one_line(path: Path, words: list[str], code: int, text: str) -> None:
    Path("short").write_bytes(path.read_bytes()[:-5])
    Path("other").write_text("1000.0 read(3) = 4\n")
    done = etude("profile", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_there_of_a_trace_cut_short_is_shown_where_asked_for(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    assert main(["profile", str(path), "--partial"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("! The trace ")
    assert "cut short" in said.splitlines()[0]
    assert "29 calls" in said


def alike_and_not(said: str) -> list[str]:
    """How many files have as many calls and bytes in both traces, and how many do not."""
    (line,) = [line for line in said.splitlines() if re.match(r"\d+ files ", line)]
    return re.findall(r"\d+", line)


def test_two_traces_stand_beside_each_other(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = COPY.read_text().replace('["copy", "in", "out"]', '["copy", "out", "in"]')
    lines = [line for line in text.splitlines() if "pread64" not in line]
    Path("other.strace").write_text("\n".join([*lines, ""]))
    imported(Path("other.strace"), Path("other.trace"))
    Path("x.roll").write_bytes(b"etuderol" + bytes(Path("copy.trace").stat().st_size - 8))
    assert main(["profile", "copy.trace", "other.trace", "--figure", "x.svg", "--roll", "x.roll"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("! A and B ")
    rows = {line.split()[0]: line for line in said.splitlines() if line.startswith(" ") and line.split()}
    assert "≠" in rows["pread64"]
    assert "≠" not in rows["write"]
    assert rows["write"].endswith("1.000")
    assert rows["roll"].split()[1:3] == rows["trace"].split()[1:3]
    assert alike_and_not(said) == ["10", "1"]
    assert "/data/in" not in said
    assert "data/in" in said
    assert Path("x.svg").stat().st_size > 5000


def test_two_traces_of_one_program_are_not_warned_of(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "copy.trace", "copy.trace"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[:2] == [f"{side}: copy in out" for side in "AB"]
    assert "≠" not in said
    assert alike_and_not(said) == ["11", "0"]


def test_two_traces_as_json_are_one_document(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "copy.trace", "copy.trace", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["a"]["events"], made["ratios"]["events"], made["same_program"]) == (CALLS, 1.0, True)


def test_events_are_printed_in_lines(path: Path) -> None:
    done = etude("script", "--events", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == CALLS
    assert lines[3].split(maxsplit=3)[3] == 'openat(AT_FDCWD, "in", O_RDONLY) = 3 <0.000020000>'


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [([], 2, "TRACE"), (["--events", "nosuch"], 3, "nosuch"), (["--events", "other"], 3, "other")],
)
def test_events_that_cannot_be_printed_are_one_line(
    path: Path, words: list[str], code: int, text: str
) -> None:
    Path("other").write_text("1000.0 read(3) = 4\n")
    done = etude("script", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_verb_record_is_the_engine_s(tmp_path: Path) -> None:
    done = etude("record", "--help")
    assert done.returncode == 0
    assert "usage: etude record" in done.stdout


def test_a_recorded_program_is_profiled_with_its_files(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", str(recorded), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    data = {each["path"]: each for each in made["files"]}[str(tmp_path / "data")]
    assert (data["written_bytes"], data["read_bytes"]) == (8 * 4096 + 100, 3 * 4096)
    assert (data["judged"], data["sequential"]) == (12, 8)
    assert made["calls"]["pwrite64"]["count"] == 1
    child = made["processes"][1]
    assert (child["parent"], child["written_bytes"]) == (0, 100)
    assert made["completeness"]["kernel"] == made["completeness"]["recorded"]
    assert made["completeness"]["missing"] == []
    assert made["recording_s"] > 0
