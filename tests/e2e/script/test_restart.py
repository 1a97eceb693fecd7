"""Scripts that restart the machine, where only this process ends: by a hook, and gone on with as at boot.

Real restarts are tried in the test machine (tests/e2e/guest).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.real import ETUDE, etude, lines, one_line

pytestmark = pytest.mark.beside
SCRIPT = """\
INTERLEAVE
  FOREACH WAY warm reboot
    TEST %WAY% 2
      CACHE %WAY% data
      PRESETUP echo presetup >>log-%WAY%
      SETUP echo setup >>log-%WAY%
      EXEC cat data
      CLEANUP echo cleanup >>log-%WAY%
    DONE
  DONE
DONE
REBOOT
ECHO restored: %RESTORE%
TEST last 1
  EXEC true
DONE
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script and its data, on a machine whose restart is the end of the process that asks for it."""
    monkeypatch.setenv("ETUDE_BOOT_DIRECTORY", str(tmp_path / "boot"))
    monkeypatch.setenv("ETUDE_RESTART", "kill -KILL $PPID")
    monkeypatch.setenv("ETUDE_SETTLE_S", "0")
    (tmp_path / "s.ap").write_text(SCRIPT)
    (tmp_path / "data").write_text("data")
    return tmp_path


def until_done(here: Path, *words: str) -> tuple[int, str]:
    """Run `etude WORDS`, then what waits for the boot while something does: how many restarts, what was said."""
    said = ended = run(here, *words)
    restarts = 0
    while ended.returncode == -signal.SIGKILL:
        restarts += 1
        assert (here / "boot" / "resume.json").exists()
        ended = run(here, "boot-resume", "resume")
        said = subprocess.CompletedProcess([], 0, said.stdout + ended.stdout, said.stderr + ended.stderr)
    assert ended.returncode == 0, said.stderr
    assert not (here / "boot" / "resume.json").exists()
    return restarts, said.stdout + said.stderr


def run(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ETUDE, *words], cwd=here, capture_output=True, text=True, check=False, timeout=120)


def sittings(here: Path) -> list[Any]:
    found: list[Any] = json.loads((here / "r" / "experiment.json").read_text())["sittings"]
    return found


def test_a_script_has_each_trial_once_and_in_order_across_its_restarts(here: Path) -> None:
    restarts, said = until_done(here, "run", "s.ap", "-o", "r")
    assert restarts == 3
    assert [how["how_ended"] for how in sittings(here)] == [*["restarting"] * 3, "complete"]
    assert "restored: 1" in said
    for way in ("warm", "reboot"):
        kept = [line for line in lines(here / "r", way) if line["kept"]]
        assert [line["trial"] for line in kept] == [1, 2]
        assert [line["block"] for line in kept] == [1, 2]
    log = (here / "log-reboot").read_text().split()
    assert log == ["presetup", "setup", "cleanup", "setup", "cleanup"], "SETUP comes behind each restart"
    assert all(sitting["settled"] is not None for sitting in sittings(here)[1:])


def test_a_restart_that_was_none_is_seen_by_the_boot(here: Path) -> None:
    until_done(here, "run", "s.ap", "-o", "r")
    for line in lines(here / "r", "reboot"):
        assert line["cache"]["performed"] is None
        assert "this boot" in line["cache"]["why"]
    shown = etude("stats", "r", cwd=here).stdout
    assert re.search(r"\bcaches .*'reboot' .*\b2 of 2\b", shown)


def test_the_run_ends_with_6_where_the_hook_only_asks_for_a_restart(here: Path) -> None:
    # What waits for the restart to end it is ended here, as the machine would.
    os.environ["ETUDE_RESTART"] = "touch asked"
    process = subprocess.Popen([ETUDE, "run", "s.ap", "-o", "r"], cwd=here, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    while "the experiment resumes after the boot" not in said:
        said = process.stderr.readline()
    process.terminate()
    process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert sittings(here)[-1]["how_ended"] == "restarting"


def test_a_hook_that_fails_leaves_all_that_was_measured_and_says_how_to_go_on(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETUDE_RESTART", "echo no power switch >&2; exit 1")
    done = run(here, "run", "s.ap", "-o", "r")
    assert done.returncode == 5
    assert "no power switch" in done.stderr.splitlines()[-1]
    assert not (here / "boot" / "resume.json").exists()
    assert done.stderr.rstrip().endswith(f"etude run {here}/r/state.json")
    monkeypatch.setenv("ETUDE_RESTART", "kill -KILL $PPID")
    assert until_done(here, "run", "r/state.json")[0] == 2
    assert [len(lines(here / "r", way)) for way in ("reboot", "last")] == [2, 1]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("REBOOT\n", "etude boot-resume install"),
        ("TEST a 1\nBOOT x\nEXEC true\nDONE\n", "nothing resumes at boot: etude boot-resume install"),
    ],
)
@pytest.mark.needs_root
def test_what_could_not_go_on_is_refused_before_anything_runs(
    here: Path, script: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETUDE_RESTART", "reboot")
    (here / "s.ap").write_text(f"SYSTEM touch ran\n{script}")
    done = run(here, "run", "s.ap", "-o", "r")
    assert done.returncode == 5
    assert said in one_line(done.stderr)
    assert not (here / "ran").exists()


def test_check_names_what_the_machine_is_restarted_for(here: Path) -> None:
    done = etude("run", "--check", "s.ap", cwd=here)
    assert "reboot: 2 trials" in done.stdout
    assert "reboot of data" in done.stdout
    assert "REBOOT" in done.stdout
