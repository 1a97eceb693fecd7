"""`etude boot-resume` without a machine that boots: scripts that are killed, and what the unit would start at boot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from support.real import ETUDE, etude, lines, one_line

pytestmark = pytest.mark.beside

# The second trial waits to be killed as long as there is a file named wait.
SCRIPT = """\
TEST t 4
EXEC sh -c 'echo >> begun; test $APEPOCH != 2 || while test -e wait; do sleep 0.05; done'
DONE
"""
REGISTER = (
    "from etude.machine.boot.record import register; register(['run', 'r/state.json'], 'r/state.json', 'r')"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that was killed in its second trial, and is to be gone on with at boot."""
    monkeypatch.setenv("ETUDE_BOOT_DIRECTORY", str(tmp_path / "boot"))
    monkeypatch.setenv("ETUDE_SETTLE_S", "0")
    (tmp_path / "s.ap").write_text(SCRIPT)
    (tmp_path / "wait").touch()
    cut_short(["run", "s.ap", "-o", "r"], tmp_path)
    subprocess.run([sys.executable, "-c", REGISTER], cwd=tmp_path, check=True)
    return tmp_path


def cut_short(words: list[str], here: Path) -> str:
    """Kill `etude WORDS` in its second trial, as a power cut would; returns what it said."""
    begun = here / "begun"
    before = begun.read_text().count("\n") if begun.exists() else 0
    at_least = before + (1 if before else 2)
    process = subprocess.Popen(
        [ETUDE, *words], cwd=here, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    wait_for(
        lambda: process.poll() is not None or (begun.exists() and begun.read_text().count("\n") >= at_least)
    )
    assert process.poll() is None, process.stderr and process.stderr.read()
    process.send_signal(signal.SIGKILL)
    said = process.communicate()[1]
    return said or ""


def wait_for(come: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not come():
        assert time.monotonic() < until
        time.sleep(0.02)


def trials(here: Path) -> Counter[int]:
    return Counter(line["trial"] for line in lines(here / "r", "t"))


def test_what_was_cut_short_is_gone_on_with_at_boot(here: Path, tmp_path: Path) -> None:
    (here / "wait").unlink()
    done = etude("boot-resume", "resume", cwd=Path("/"))
    assert "boot 1 of 3" in done.stderr
    assert trials(here) == {1: 1, 2: 1, 3: 1, 4: 1}
    assert "Results: " in done.stdout


def test_a_boot_loop_stops_at_the_fourth_boot(here: Path) -> None:
    for number in (1, 2, 3):
        assert f"boot {number} of 3" in cut_short(["boot-resume", "resume"], here)
    done = etude("boot-resume", "resume", cwd=here, check=4)
    assert "3 boots" in one_line(done.stderr)
    assert [path.name for path in (here / "boot").iterdir()] == ["resume.json.stopped"]
    assert etude("boot-resume", "resume", cwd=here).stdout.startswith("Nothing waits")
    (here / "wait").unlink()
    etude("run", "r/state.json", cwd=here)
    assert trials(here) == {1: 1, 2: 1, 3: 1, 4: 1}


@pytest.mark.needs_root
@pytest.mark.parametrize("which", ["r/state.json", "boot/resume.json"])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.chmod(0o666), "others may write"),
        (lambda file: os.chown(file, 12345, -1), "user 12345"),
        (lambda file: file.parent.chmod(0o777), "others may put"),
    ],
    ids=["mode", "owner", "directory"],
)
def test_what_others_could_have_written_is_refused_in_one_line(
    here: Path, which: str, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(here / which)
    done = etude("boot-resume", "resume", cwd=here, check=3)
    assert said in one_line(done.stderr)
    assert str(here / which) in done.stderr
    assert trials(here) == {1: 1}
    assert (here / "boot" / "resume.json").exists()
    assert "Would be refused: " in etude("boot-resume", "status", cwd=here, check=None).stdout


def test_what_is_being_gone_on_with_is_left_alone(here: Path) -> None:
    from etude.results.writer import sole_writer

    before = (here / "boot" / "resume.json").read_bytes()
    with sole_writer(here / "r"):
        done = etude("boot-resume", "resume", cwd=here, check=5)
    assert "another Étude" in one_line(done.stderr)
    assert (here / "boot" / "resume.json").read_bytes() == before


def test_the_status_says_what_waits_and_keeps_the_environment_to_itself(here: Path) -> None:
    done = etude("boot-resume", "status", "--json", cwd=here, check=None)
    found = json.loads(done.stdout)
    assert done.returncode == (0 if found["unit"]["installed"] else 1)
    assert (found["waits"]["results"], found["waits"]["boots"]) == (str(here / "r"), 0)
    assert (found["refused"], found["restart"]) == (None, "reboot")
    assert "environment" not in found["waits"]


def test_only_the_status_is_json(tmp_path: Path) -> None:
    assert "--json" in one_line(etude("boot-resume", "install", "--json", cwd=tmp_path, check=2).stderr)
