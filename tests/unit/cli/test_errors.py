"""Bad input: one line that says what, where and what to do; the right exit code; nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.verbs import SUMMARIES
from etude.errors import MachineRefuses
from support.builders import measurement, results_directory
from support.fakes import World
from support.golden import Golden

Etude = Callable[..., int]
Captured = pytest.CaptureFixture[str]

USAGE = [
    ([], 2, "nothing to run"),
    (["-n", "x"], 2, "nothing to run"),
    (["a", "b", "-n", "x"], 2, "1 names (-n)"),
    (["a", "a"], 2, "'a'"),
    ([""], 2, "test '': "),
    (["a 'b"], 2, "No closing quotation"),
    (["a", "--metric", "rate=("], 2, "--metric: '(' is no"),
    (["a", "--metric", "rate"], 2, "--metric: 'rate': "),
    (["a", "--metric", "elapsed=x"], 2, "metric elapsed"),
    (["a", "-P", "n"], 2, "-P n: expected"),
    (["a {n}", "-P", "n=3..1"], 2, "-P n=3..1: never"),
    (["a {n}", "-P", "n=1,2", "-P", "n=3"], 2, "-P n: stands"),
    (["a", "-P", "n=1,2"], 2, "contains {n}"),
    (["a", "--precision", "x"], 2, "--precision: 'x'"),
    (["a", "--precision", "200%"], 2, "--precision 2: "),
    (["a", "--precision", "nan"], 2, "--precision: 'nan'"),
    (["a", "--precision", "5"], 2, "500 %"),
    (["a", "--between-sessions", "-1"], 2, "--between-sessions: '-1'"),
    (["a", "--time", "soon"], 2, "--time: 'soon'"),
    (["a", "--time", "0"], 2, "--time 0"),
    (["a", "--timeout", "0"], 2, "test 'a': a timeout"),
    (["a", "--trials", "0"], 2, "--trials 0: at least"),
    (["a", "--trials", "x"], 2, "'x': expected a whole number"),
    (["a", "--trials", "5", "--max-trials", "9"], 2, "--trials fixes"),
    (["a", "--min-trials", "1"], 2, "--min-trials 1"),
    (["a\nb"], 2, "line break"),
    (["a", "--max-trials", "1"], 2, "--max-trials 1: "),
    (["a", "--input", "."], 2, "no regular file"),
    (["a", "--max-trials", "3", "--min-trials", "4"], 2, "--max-trials 3: "),
    (["a", "--workers", "0"], 2, "0 workers"),
    (["a", "--workers", "2", "--inner", "3"], 2, "single worker"),
    (["a", "--inner", "0"], 2, "--inner: '0': "),
    (["a", "--inner", "x"], 2, "--inner: 'x': "),
    (["a", "--cpu", "3-1"], 2, "--cpu: '3-1'"),
    (["a", "--schedule", "odd"], 2, "invalid choice: 'odd'"),
    (["a", "--schedule", "duet"], 2, "duet needs"),
    (["a", "b", "--schedule", "duet", "--inner", "2"], 2, "inner repetitions"),
    (["a", "--export", "xml"], 2, "--export xml: "),
    (["a", "--nosuch"], 2, "unrecognized arguments: --nosuch"),
    (["a", "--seed", "x"], 2, "'x': expected a whole number"),
    (["a", "--resume", "DIR"], 2, "--resume takes"),
    (["--resume", "DIR", "-o", "x"], 2, "--resume takes"),
    (["--resume", "DIR", "--seed", "0", "-w", "2", "--monitor", "off"], 2, "--warmup, --seed, --monitor"),
    (
        ["--resume", "DIR", "--schedule", "blocks", "-w", "1", "--counters", "auto", "--monitor", "1s", "-N"],
        2,
        "--warmup, --schedule, -N, --counters, --monitor",
    ),
    (["--resume", "nowhere"], 3, "nowhere: no results"),
    (["a", "--baseline", "nowhere"], 3, "nowhere: no results"),
    (["a\udcff"], 2, "UTF-8"),
]


def one_line(capsys: Captured) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("etude: "), err
    assert err.count("\n") == 1, err
    assert err.endswith("\n")
    return err


@pytest.mark.parametrize(
    ("arguments", "code", "says"), USAGE, ids=[" ".join(a) or "none" for a, _, _ in USAGE]
)
def test_what_cannot_be_meant_is_one_line_and_leaves_nothing_behind(
    etude: Etude, world: World, capsys: Captured, arguments: list[str], code: int, says: str, golden: Golden
) -> None:
    assert etude("bench", *arguments) == code
    line = one_line(capsys)
    assert says in line
    if "argument" not in line:  # versions of argparse word their errors differently
        golden(line)
    assert os.listdir() == []
    assert world.log == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (
            ["nosuch"],
            2,
            f"'nosuch'; there are {', '.join(SUMMARIES)}: ",
        ),
        (["--nosuch"], 2, "no verb '--nosuch'"),
        (["ls -l"], 2, "type: etude bench 'ls -l'"),
        (["ls", "-l"], 2, "type: etude bench 'ls -l'"),
        (["ls -l", "true"], 2, "type: etude bench 'ls -l' true"),
        (["sleep", "1"], 2, "to measure it, type: etude bench 'sleep 1'"),
        (["stat", "r"], 2, "did you mean stats?"),
        (["io", "swep"], 2, "did you mean io sweep?"),
        (["bench", "a", "-la"], 2, "such as 'ls -l'"),
        (["bench", "sleep", "0.01"], 2, "etude bench 'sleep 0.01'"),
        (["bench", "ls -l", "/"], 2, "etude bench 'ls -l /'"),
        (["bench", "--fail-if", "mean > 3 s", "a"], 2, "did you mean elapsed?"),
        (["bench", "--fail-if", "minor_fults > 3", "a"], 2, "did you mean minor_faults?"),
        (["bench", "--fail-if", "user > baseline", "a", "b"], 2, "--primary user"),
        (["bench", "--fail-if", "elapsed > baseline * 1.05", "a"], 2, "--baseline DIR"),
        (["statz"], 2, "did you mean stats?"),
        (["hsitory", "mark"], 2, "did you mean history mark?"),
        (["history", "--gaet", "x"], 2, "did you mean --gate?"),
        (["help", "nosuch"], 2, "no verb 'nosuch'"),
        (["stats"], 2, "arguments are required: FILE"),
        (["stats", "nowhere"], 3, f"nowhere: cannot be read: {os.strerror(errno.ENOENT)}"),
        (["stats", "--nosuch", "x"], 2, "unrecognized arguments: --nosuch"),
        (["doctor", "x"], 2, "unrecognized arguments: x"),
    ],
)
def test_other_verbs_say_it_alike(
    etude: Etude, capsys: Captured, arguments: list[str], code: int, says: str
) -> None:
    assert etude(*arguments) == code
    assert says in one_line(capsys)
    assert os.listdir() == []


def test_results_of_a_newer_version_are_refused_by_every_verb(
    etude: Etude, capsys: Captured, tmp_path: Path
) -> None:
    newer = str(results_directory(tmp_path / "newer", {"a": [measurement()]}, version=99))
    for arguments in (["stats", newer], ["bench", "--resume", newer], ["bench", "a", "--baseline", newer]):
        assert etude(*arguments) == 3
        line = one_line(capsys)
        assert line.startswith(f"etude: {newer}/experiment.json: ")
        assert "version 99" in line


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\0\1\2", '{"format": "x"}', "\ud800"])
def test_a_file_that_is_not_ours_is_an_input_error(
    etude: Etude, capsys: Captured, tmp_path: Path, content: str
) -> None:
    (tmp_path / "experiment.json").write_text(content, errors="surrogatepass")
    for arguments in (["stats", str(tmp_path)], ["bench", "--resume", str(tmp_path)]):
        assert etude(*arguments) == 3
        assert str(tmp_path / "experiment.json") in one_line(capsys)


def test_a_file_for_a_directory_is_said_to_be_one(etude: Etude, capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert etude("stats", str(tmp_path / "file")) == 3
    assert "file: is empty" in one_line(capsys)
    assert etude("bench", "--resume", str(tmp_path / "file")) == 3
    assert "is a file" in one_line(capsys)
    assert etude("bench", "a", "-o", str(tmp_path / "file")) == 5
    assert f"{tmp_path / 'file'}: " in one_line(capsys)


def test_a_directory_with_results_is_not_written_over(etude: Etude, capsys: Captured, tmp_path: Path) -> None:
    assert etude("bench", "a", "--trials", "2", "-o", str(tmp_path / "r")) == 0
    capsys.readouterr()
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))
    assert etude("bench", "a", "--trials", "2", "-o", str(tmp_path / "r")) == 3
    assert f"--resume {tmp_path / 'r'}" in one_line(capsys)
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before


def test_a_path_that_is_too_long_is_one_line(etude: Etude, capsys: Captured) -> None:
    assert etude("bench", "a", "-o", "x" * 300) == 5
    assert os.strerror(errno.ENAMETOOLONG) in one_line(capsys)
    assert etude("stats", "x" * 300) == 3
    assert os.strerror(errno.ENAMETOOLONG) in one_line(capsys)


def test_a_command_that_fails_is_exit_code_4_and_stays_on_disk(
    etude: Etude, world: World, capsys: Captured, golden: Golden
) -> None:
    world.times = world.times | {"false": {"exit_status": 1, "stderr": "no\n"}}  # type: ignore[operator]
    assert etude("bench", "false", "-o", "r") == 4
    line = one_line(capsys)
    assert line.startswith("etude: false: trial 0: ")
    assert "status 1: no" in line
    golden(line)
    assert json.loads(Path("r/false/results.jsonl").read_text())["why"] == "failed"


def test_a_hook_that_fails_is_exit_code_4(
    etude: Etude, world: World, capsys: Captured, golden: Golden
) -> None:
    world.times = world.times | {"mount it": {"exit_status": 32}}  # type: ignore[operator]
    assert etude("bench", "a", "--setup", "mount it") == 4
    line = one_line(capsys)
    assert all(part in line for part in ("setup", "'a'", "status 32", "mount it"))
    golden(line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_128_and_its_number_and_says_how_to_go_on(
    etude: Etude, world: World, capsys: Captured, number: signal.Signals, golden: Golden
) -> None:
    def come(now: int, world: World) -> None:
        if now == 3:
            world.signal(number)

    world.before = come
    assert etude("bench", "a", "b", "-o", "r") == 128 + number
    line = one_line(capsys)
    assert number.name in line
    assert line.endswith("bench --resume r\n")
    golden(line)
    world.before = lambda now, world: None
    assert etude("bench", "--resume", "r") == 0


@pytest.mark.parametrize("pool", [None, {"kind": "local", "ended": "complete", "decisions": []}])
@pytest.mark.parametrize(
    ("verb", "kind", "advice"),
    [
        ("bench", "script", "etude run --resume r"),
        ("bench", "peak", "the same etude peak command with -o r"),
        ("bench", "surface", "the same etude surface command with -o r"),
        ("run", None, "etude bench --resume r"),
        ("run", "peak", "the same etude peak command with -o r"),
        ("run", "surface", "the same etude surface command with -o r"),
        ("io sweep", None, "etude bench --resume r"),
        ("io sweep", "script", "etude run --resume r"),
    ],
)
def test_results_that_another_verb_goes_on_with_are_refused_with_its_command(
    etude: Etude, capsys: Captured, verb: str, kind: str | None, advice: str, pool: dict[str, object] | None
) -> None:
    results_directory(Path("r"), {"a": [measurement("a", 1)]})
    file = Path("r/experiment.json")
    document = json.loads(file.read_text())
    document["plan"] |= {"kind": kind} if kind else {}
    document["sittings"][-1]["how_ended"] = "complete"
    document |= (
        {"pool": pool, "monitor": None, "digest": "", "command_line": [], "verb": kind or "bench"}
        if pool
        else {}
    )
    file.write_text(json.dumps(document))
    assert (
        etude(*verb.split(), "--resume", "r", *(["--fail-if", "elapsed > 1"] if verb == "bench" else [])) == 3
    )
    assert one_line(capsys).endswith(f"resume with: {advice}\n")


def test_an_engine_that_died_is_exit_code_5_and_says_how_to_go_on(
    etude: Etude, world: World, capsys: Captured
) -> None:
    def die(now: int, world: World) -> None:
        if now == 5:
            raise MachineRefuses("the engine died")

    world.before = die
    assert etude("bench", "a", "b", "-o", "r") == 5
    assert one_line(capsys).endswith(" --resume r\n")
    world.before = lambda now, world: None
    assert etude("bench", "--resume", "r") == 0


def test_results_that_are_removed_meanwhile_are_said_to_be_gone(
    etude: Etude, world: World, capsys: Captured
) -> None:
    def remove(now: int, world: World) -> None:
        if now == 5:
            shutil.rmtree("r")
            raise MachineRefuses("the engine died")

    world.before = remove
    assert etude("bench", "a", "b", "-o", "r") == 5
    assert "is gone" in one_line(capsys)


def test_a_full_device_is_exit_code_5_and_says_to_resume(
    etude: Etude, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lines = os.write, []

    def full(file: int, data: bytes) -> int:
        if data.startswith(b'{"test"'):
            lines.append(data)
            if len(lines) == 6:
                real(file, data[:100])
                raise OSError(errno.ENOSPC, "full")
        return real(file, data)

    monkeypatch.setattr("os.write", full)
    assert etude("bench", "a", "b", "-o", "r") == 5
    line = one_line(capsys)
    assert os.strerror(errno.ENOSPC) in line
    assert "--resume" in line
    content = [path.read_text() for path in Path("r").glob("*/results.jsonl")]
    assert sum(text.count("\n") for text in content) == 5
    assert all(text.endswith("\n") for text in content if text)


def test_a_missing_engine_is_exit_code_5(
    etude: Etude, capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from etude.engine import Engine
    from etude.experiment import run as running

    monkeypatch.setattr(running, "engine_maker", lambda: Engine)
    monkeypatch.setenv("ETUDE_ENGINE", str(tmp_path / "nowhere"))
    assert etude("bench", "a", "-o", "r") == 5
    line = one_line(capsys)
    assert line.startswith(f"etude: {tmp_path / 'nowhere'}: ")
    assert os.strerror(errno.ENOENT) in line
