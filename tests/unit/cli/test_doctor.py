"""`etude doctor` on a narrow terminal, and piped."""

from __future__ import annotations

import io
from argparse import Namespace

import pytest

from etude.cli.machine import doctor
from etude.machine.checks import Finding

FINDINGS = [
    Finding("clock", "tsc", "good", "A slow clock is measured too.", "nothing"),
    Finding("load", "9 runnable", "noisy", "Runnable processes wait for one another. " * 3, "wait"),
]


class Screen(io.StringIO):
    def __init__(self, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


def shown(monkeypatch: pytest.MonkeyPatch, *, tty: bool) -> list[str]:
    screen = Screen(tty)
    monkeypatch.setattr("etude.cli.machine.doctor.examine", lambda: FINDINGS)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout", screen)
    assert doctor.run(Namespace(json=False)) == 0
    return screen.getvalue().splitlines()


def test_a_narrow_terminal_has_no_columns_and_no_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, tty=True)
    assert lines[0] == "noisy    load: 9 runnable"
    assert max(map(len, lines)) <= 40
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[-1] == "good     clock: tsc"


def test_piped_each_finding_is_a_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy, good = shown(monkeypatch, tty=False)
    assert noisy.startswith("noisy: load: 9 runnable: ")
    assert noisy.endswith(" To do: wait.")
    assert good == "good: clock: tsc: A slow clock is measured too."
