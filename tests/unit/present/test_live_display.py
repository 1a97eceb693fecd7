"""The live display: the first mean at once on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from etude.errors import EtudeError
from etude.experiment.plan import make_plan
from etude.experiment.progress import Progress
from etude.experiment.run import resume, run
from etude.present.progress.bench import LINE_EVERY_S, Display, time_left
from etude.units.formatting import duration
from support.builders import measurement
from support.fakes import Screen, World, around
from support.golden import Golden


@pytest.fixture(autouse=True)
def _able_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(directory: Path, tty: bool, times: dict[str, Any], **options: Any) -> Screen:
    """What a display shows of an experiment whose clock is the time that its commands took."""
    world = World(times)
    terminal = Screen(tty, world)
    display = Display(terminal, clock=lambda: world.elapsed_s)
    plan = make_plan(options.pop("commands", ["a", "b"]), **{"seed": 1, "trials": 20, **options})
    run(plan, directory=directory, observe=display.observe, make_engine=world.make_engine)
    display.close()
    return terminal


def test_elsewhere_a_line_stands_every_three_seconds_at_most(tmp_path: Path) -> None:
    terminal = shown(tmp_path, False, {"a": around(0.4), "b": around(0.5)})
    at = [when for when, text in terminal.times if text.strip()]
    assert len(at) >= 5
    assert all(later - earlier >= LINE_EVERY_S for earlier, later in itertools.pairwise(at))
    assert at[0] >= LINE_EVERY_S
    for line in terminal.getvalue().splitlines():
        assert re.match(r"\d+ s: ", line)
        assert re.findall(r"([ab]): \d+", line) == ["a", "b"]
    assert "\x1b" not in terminal.getvalue()


def test_a_line_says_the_interval_so_far(tmp_path: Path, golden: Golden) -> None:
    text = shown(tmp_path, False, {"a": around(0.4), "b": around(0.5)}).getvalue()
    means = re.findall(r"([ab]): [^;]*?(\d+)\.\d ms ± \d\.\d+ %", text.splitlines()[-1])
    assert {name: int(ms) for name, ms in means} == pytest.approx({"a": 400, "b": 500}, abs=2)
    golden(text)


def test_what_is_done_within_seconds_says_nothing_elsewhere(tmp_path: Path) -> None:
    assert shown(tmp_path, False, {"a": 0.01, "b": 0.01}).getvalue() == ""


def test_repetitions_within_the_engine_show_their_count(tmp_path: Path) -> None:
    lines = shown(tmp_path, False, {"a": 1.0}, commands=["a"]).getvalue().splitlines()
    counts = [int(m[1]) for line in lines if (m := re.search(r"a: (\d+) trial", line))]
    assert counts == sorted(counts)
    assert counts[0] > 0
    assert counts[-1] <= 20


def test_a_terminal_shows_the_first_mean_at_once(tmp_path: Path) -> None:
    terminal = shown(tmp_path, True, {"a": around(0.4, 0.0), "b": around(0.5, 0.0)})
    means = [(when, text) for when, text in terminal.times if "mean" in text]
    when, text = means[0]
    assert re.search(r"[ab]: .*(400|500)\.0 ms \(1 trial\)", text)
    assert when == pytest.approx(0.9 + (0.4 if "400" in text else 0.5), abs=0.01)


def test_a_terminal_says_first_what_is_being_done(tmp_path: Path) -> None:
    terminal = shown(tmp_path, True, {"a": 0.4, "b": 0.5})
    assert "first run of" in terminal.getvalue()


def test_a_terminal_is_left_clean(tmp_path: Path) -> None:
    terminal = shown(tmp_path, True, {"a": 1e-6}, commands=["a"], trials=2)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_terminal_is_left_clean_where_the_first_run_failed(tmp_path: Path) -> None:
    world = World({"a": {"exit_status": 1}})
    terminal = Screen(True, world)
    display = Display(terminal, clock=lambda: world.elapsed_s)
    with pytest.raises(EtudeError):
        run(make_plan(["a"]), directory=tmp_path, observe=display.observe, make_engine=world.make_engine)
    assert "first run of" in terminal.getvalue()
    display.close()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path: Path) -> None:
    terminal = shown(tmp_path, True, {"a": 0.4, "b": 0.5}, commands=["a '[/x]' [a-z]", "b"])
    assert "[/x]" in terminal.getvalue()
    assert "[a-z]" in terminal.getvalue()


def test_a_terminal_says_how_long_it_takes_to_the_first_verdict(tmp_path: Path) -> None:
    terminal = shown(tmp_path, True, {"a": 1.0, "b": 1.0}, trials=10)
    left = [int(seconds) for seconds in re.findall(r"(\d+) s to", terminal.getvalue())]
    assert left[0] == 18
    assert max(left) <= 25, "with the trials of the first test against itself"
    assert left[-1] <= 2


def test_that_it_was_resumed_is_said(tmp_path: Path) -> None:
    from etude.errors import MachineRefuses

    def die(now: int, world: World) -> None:
        if now == 5:
            raise MachineRefuses("died")

    with pytest.raises(MachineRefuses):
        run(
            make_plan(["a"], seed=1),
            directory=tmp_path,
            make_engine=World({"a": 1.0}, before=die).make_engine,
        )
    world = World()
    terminal = Screen(False, world)
    display = Display(terminal, clock=lambda: world.elapsed_s)
    resume(tmp_path, observe=display.observe, make_engine=world.make_engine)
    assert terminal.getvalue().startswith("resumed: 4 ")


def test_the_time_left_is_the_clock_s(tmp_path: Path) -> None:
    """Two trials of a second each, ten seconds from start to start."""
    tests = make_plan(["a"]).tests
    rows = [measurement("a", n, 1.0, start_ns=1 + n * 10**10) for n in range(2)]
    assert time_left(tests, Progress({"a": rows}), 2) == ""
    assert time_left(tests, Progress({"a": rows}), 12).split()[1:3] == duration(10 * 5.5).split()
