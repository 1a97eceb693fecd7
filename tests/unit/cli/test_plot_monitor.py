"""`etude plot --monitor`: a figure a session, and what it refuses in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.builders import measurement, results_directory
from support.monitored import START_NS, busy_second, columns, head, trials_of_seconds, write
from support.places import DATA

Etude = Callable[..., int]
LENGTHS = [1] * 6 + [3] + [1] * 9
READINGS = [busy_second(n, 0.4, 1.5) if 7 <= n <= 9 else busy_second(n, 0.97) for n in range(1, 19)]


@pytest.fixture
def results() -> str:
    return str(trials_of_seconds(Path("r"), LENGTHS, READINGS))


def test_a_figure_is_written(etude: Etude, results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert etude("plot", "--monitor", results, "-o", "it.svg", "--data", "beside") == 0
    assert b"<svg" in Path("it.svg").read_bytes()
    assert capsys.readouterr().out.splitlines()[1].startswith("  shaded: ")
    assert etude("plot", "--monitor", results, "--trial", "7") == 0
    assert Path("monitor.pdf").read_bytes().startswith(b"%PDF")


def test_of_two_sittings_two_are_written(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [measurement("a", n, elapsed_s=1.0, sitting=n, start_ns=START_NS) for n in (1, 2)]
    sittings = [{"sitting": n, "boot_id": "boot", "host": "here", "start": "", "end": None} for n in (1, 2)]
    plan = {"kind": "script", "primary": "elapsed"}
    directory = results_directory(Path("r"), {"a": rows}, sittings=sittings, plan=plan)
    for number in (1, 2):
        write(directory / f"monitor-{number}.jsonl", [head(), columns(), busy_second(1, 0.5)])
    assert etude("plot", "--monitor", "r", "-o", "it.png") == 0
    assert [path.name for path in sorted(Path().glob("*.png"))] == ["it-1.png", "it-2.png"]
    assert etude("plot", "--monitor", "r", "--trial", "2", "-o", "one.png") == 0
    assert Path("one.png").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--monitor", "r", "r"), 2, "--monitor draws one"),
        (("--monitor", "--kind", "bars", "r"), 2, "--monitor draws one"),
        (("--monitor", "--trial", "77", "r"), 2, "--trial 77: test 'a'"),
        (("--monitor", "--test", "zz", "r"), 2, "--test zz: "),
        (("--trial", "7", "r"), 2, "is for --monitor"),
        (("--monitor", "--trial", "x", "r"), 2, "--trial: 'x': "),
        (("--monitor", "none"), 3, "none"),
        (("--monitor", "it.res"), 2, "it.res: --monitor"),
    ],
    ids=["two", "kind", "no trial", "no test", "alone", "no number", "nothing", "a file"],
)
def test_what_it_refuses(
    words: tuple[str, ...],
    code: int,
    said: str,
    etude: Etude,
    results: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = DATA / "gcc-ext2.res"
    Path("it.res").write_bytes(source.read_bytes())
    assert etude("plot", *words) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_without_readings_there_is_nothing_to_draw(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    trials_of_seconds(Path("r"), LENGTHS, None)
    assert etude("plot", "--monitor", "r") == 3
    assert "nothing was monitored" in capsys.readouterr().err
    trials_of_seconds(Path("s"), LENGTHS, [{"what": 1}])
    assert etude("plot", "--monitor", "s") == 3
    assert "monitor-1.jsonl:3: " in capsys.readouterr().err
