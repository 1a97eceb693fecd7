"""The resume record: whose it is, what it keeps, and what is wrong with one."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from etude.errors import InputError, MachineRefuses
from etude.machine.boot import record


def test_what_is_registered_is_read_back(kept: Any) -> None:
    kept.register(entry="kernel B")
    found = record.load()
    assert found.words == ["run", str(kept.state)]
    assert (found.state, found.results) == (str(kept.state), str(kept.directory))
    assert (found.entry, found.boots, found.progress, found.most_boots) == ("kernel B", 0, "", 3)
    assert (found.directory, found.program[0]) == (os.getcwd(), sys.executable)
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_nobody_else_may_read_or_write_it(kept: Any) -> None:
    kept.register()
    assert stat.S_IMODE(record.path().stat().st_mode) == 0o600


def test_the_program_that_it_names_runs_etude_and_imports_nothing_from_where_it_runs(
    kept: Any, tmp_path: Path
) -> None:
    kept.register()
    (tmp_path / "argparse.py").write_text("raise SystemExit('imported')")
    words = [*record.load().program, "boot-resume", "--help"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_environment_is_that_in_which_etude_was_started_without_the_session(tmp_path: Path) -> None:
    script = (
        "import os; os.environ['LATE'] = '1'\nfrom etude.machine.boot import record\n"
        "record.register(['run', 'x'], 'x', '.')\n"
    )
    environment = os.environ | {
        "KEPT": "ü =\n",
        "SSH_CLIENT": "1",
        "XDG_SESSION_ID": "2",
        "NOTIFY_SOCKET": "/x",
    }
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", script]
    raw = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()} | {
        b"NO_TEXT": b"\xff"
    }
    subprocess.run(words, env=raw, cwd=tmp_path, check=True)
    found = record.load().environment
    expected = set(environment) - {"SSH_CLIENT", "XDG_SESSION_ID", "NOTIFY_SOCKET"}
    assert {name for name in expected if not record.OF_A_SESSION.fullmatch(name)} == set(found)
    assert found["KEPT"] == "ü =\n"


def test_a_script_that_registers_again_keeps_what_was_counted(kept: Any) -> None:
    kept.register()
    counted = record.replace(record.load(), boots=2, progress="p", seen=["o", "p"])
    record.write(counted)
    kept.register(entry="b")
    found = record.load()
    assert (found.boots, found.progress, found.seen, found.entry) == (2, "p", ["o", "p"], "b")


def test_what_waits_for_a_boot_is_not_pushed_aside(kept: Any, tmp_path: Path) -> None:
    kept.register()
    with pytest.raises(MachineRefuses, match=str(kept.state)):
        record.register(["run", "x"], tmp_path / "x", tmp_path)
    kept.state.unlink()
    record.register(["run", "x"], tmp_path / "x", tmp_path)
    assert record.load().words == ["run", "x"]


def test_what_is_forgotten_is_gone_and_that_of_others_is_left(kept: Any, tmp_path: Path) -> None:
    record.forget()
    kept.register()
    record.forget(tmp_path)
    assert record.path().exists()
    record.forget(kept.directory)
    assert not record.path().exists()
    kept.register()
    assert record.give_up().exists()
    record.forget()
    assert list(record.directory().iterdir()) == []


def test_a_record_that_others_may_write_is_refused(kept: Any) -> None:
    kept.register()
    record.path().chmod(0o602)
    with pytest.raises(InputError, match="others may write"):
        record.load()


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"words": "run"},
        {"words": [1]},
        {"program": []},
        {"environment": {"A": 1}},
        {"state": "a\0b"},
        {"entry": 1},
        {"boots": -1},
        {"boots": True},
        {"most_boots": 0},
        {"seen": [None]},
        {"progress": None},
    ],
    ids=str,
)
def test_a_damaged_record_is_refused_in_one_line(kept: Any, change: dict[str, Any]) -> None:
    kept.register()
    document = json.loads(record.path().read_text())
    record.path().write_text(json.dumps(document | change))
    with pytest.raises(InputError, match=r"resume\.json: "):
        record.load()
    (name,) = change
    del document[name]
    record.path().write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"resume\.json: "):
        record.load()


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff", "[" * 100_000])
def test_what_is_no_record_is_refused_in_one_line(kept: Any, text: str) -> None:
    kept.register()
    record.path().write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"resume\.json: "):
        record.load()


def test_a_record_that_cannot_be_written_is_one_line(kept: Any, boot_directory: Path) -> None:
    boot_directory.write_text("in the way")
    with pytest.raises(MachineRefuses, match="cannot be made"):
        kept.register()
    boot_directory.unlink()
    (boot_directory / ".resume.json.new" / "x").mkdir(parents=True)
    with pytest.raises(MachineRefuses, match="cannot be written"):
        kept.register()
