"""The policy and the harness of docs/howto/extending.md are searched with as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.peak.search_store import SearchStore
from support.places import DOCS

pytestmark = pytest.mark.beside

DOCUMENT = DOCS / "howto" / "extending.md"
TEXT = DOCUMENT.read_text()
BLOCKS = re.findall(r"^```py\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ (PYTHONPATH=\. etude peak .*)$", TEXT, re.MULTILINE)


def printed(command: str, directory: Path) -> str:
    """Run a line of the page there, beside its modules; returns its standard output."""
    for block in BLOCKS:
        (name,) = re.findall(r"^class (\w+):$", block, re.MULTILINE)[:1]
        (directory / f"{name.lower()}.py").write_text(block)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    beside = os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        ["sh", "-c", command.replace("PYTHONPATH=.", f"PYTHONPATH={beside}")],
        cwd=directory,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def test_the_policy_finds_a_peak(tmp_path: Path) -> None:
    said = printed(COMMANDS[0], tmp_path)
    kept = SearchStore(tmp_path / "thirds")
    assert "Peak rate: " in said.partition("\n")[0]
    assert kept.answer is not None
    assert kept.answer.rate == pytest.approx(700, abs=70)
    assert any(trial.ended == "early" for trial in kept.trials())


def test_the_harness_is_measured(tmp_path: Path) -> None:
    printed(COMMANDS[1], tmp_path)
    trials = SearchStore(tmp_path / "sleepers").trials()
    assert len(trials) >= 2
    first = trials[0]
    assert first.load == 20
    assert first.windows[0].mean_s is not None
    assert first.windows[0].mean_s >= 0.010
    assert first.cost_s >= 0.3


def test_the_page_names_what_a_policy_and_a_bench_have() -> None:
    for name in (
        "decide",
        "enough",
        "best",
        "run(offer, enough)",
        "bench(factors, place)",
        "text",
        "limited",
    ):
        assert f"`{name}" in TEXT or f", `{name}" in TEXT, name
