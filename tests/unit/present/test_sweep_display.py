"""The progress of a sweep: one line for all of its tests, between trials."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from etude.experiment.plan import make_plan
from etude.experiment.run import resume, run
from etude.present.progress.bench import SCRIPT_LINE_EVERY_S, SweepDisplay
from support.fakes import Screen, World
from support.golden import Golden


@pytest.fixture(autouse=True)
def _able_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(directory: Path, tty: bool, *, each_s: float = 1.0, trials: int = 10) -> Screen:
    """What is shown of a sweep over four sizes, each trial of which takes `each_s` on the display's clock."""
    world = World(dict.fromkeys("abcd", each_s))
    screen = Screen(tty, world)
    display = SweepDisplay(screen, clock=lambda: world.elapsed_s)
    plan = make_plan(list("abcd"), seed=1, trials=trials, again_every=0)
    run(plan, directory, observe=display.observe, make_engine=world.make_engine)
    display.close()
    return screen


def test_elsewhere_a_line_stands_every_five_seconds_at_most(tmp_path: Path, golden: Golden) -> None:
    screen = shown(tmp_path, False)
    at = [when for when, text in screen.times if text.strip()]
    assert len(at) >= 6
    assert all(later - earlier >= SCRIPT_LINE_EVERY_S for earlier, later in itertools.pairwise((0.0, *at)))
    assert "\x1b" not in screen.getvalue()
    for line in screen.getvalue().splitlines():
        assert re.fullmatch(r"\d+ of 40 .* %\).* [abcd]", line), line
    golden(screen.getvalue())


def test_what_is_done_within_seconds_says_nothing_elsewhere(tmp_path: Path) -> None:
    assert shown(tmp_path, False, each_s=0.01).getvalue() == ""


def test_the_first_runs_are_said_to_be_set_aside(tmp_path: Path) -> None:
    screen = shown(tmp_path, False, each_s=5.0, trials=2)
    lines = screen.getvalue().splitlines()
    assert all(line.startswith("first runs") for line in lines[:4])
    assert {line[-1] for line in lines[:4]} == set("abcd")
    assert re.match(r"1 of 8 .*\(12 %\)", lines[4])


def test_what_is_left_is_counted_from_the_kept_trials(tmp_path: Path) -> None:
    text = shown(tmp_path, True).getvalue()
    left = [int(seconds) for seconds in re.findall(r"(\d+) s left", text)]
    assert left[:3] == [39, 38, 37], "each trial of a second is one second less"
    assert [int(part) for part in re.findall(r"\((\d+) %\)", text)] == [100 * n // 40 for n in range(1, 41)]


def test_a_terminal_is_drawn_over_and_left_clean(tmp_path: Path) -> None:
    text = shown(tmp_path, True).getvalue()
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")


def test_after_it_was_resumed_only_what_is_missing_counts_for_the_time(tmp_path: Path) -> None:
    from etude.errors import MachineRefuses

    def die(now: int, world: World) -> None:
        if now == 25:
            raise MachineRefuses("died")

    plan = make_plan(list("abcd"), seed=1, trials=10, again_every=0)
    with pytest.raises(MachineRefuses):
        run(plan, directory=tmp_path, make_engine=World(before=die).make_engine)
    world = World(dict.fromkeys("abcd", 1.0))
    screen = Screen(True, world)
    display = SweepDisplay(screen, clock=lambda: world.elapsed_s)
    resume(tmp_path, observe=display.observe, make_engine=world.make_engine)
    text = screen.getvalue()
    assert "resumed: 24 " in text
    first = re.search(r"(\d+) of 40 [^·]*· \w+ (\S+) (s|min) ", text)
    assert first is not None, text
    assert (40 - int(first[1]), first[3]) == (int(first[2]), "s")


@pytest.mark.parametrize("tty", [True, False])
def test_only_a_terminal_shows_that_figures_are_drawn(tty: bool) -> None:
    screen = Screen(tty, World())
    display = SweepDisplay(screen)
    display.figures()
    assert ("figures" in screen.getvalue()) == tty
    display.close()
    assert screen.getvalue().endswith("\r\x1b[K" if tty else "")
