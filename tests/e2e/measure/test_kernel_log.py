"""What the kernel says during a trial stands in that trial, and in no other."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from support.real import ETUDE, called, experiment, lines

pytestmark = [pytest.mark.serial, pytest.mark.needs_root]

COUNTED = """\
#!/bin/sh
read n < count || n=0
echo $((n + 1)) > count
if [ "$n" = 3 ]; then echo "<4>$MARK overheats" > /dev/kmsg; fi
sleep 0.1
"""
"""The first run is number 0."""
SCRIPT = """\
ENV APPROGRAMS=cat,sort
TEST marked 6
    EXEC ./counted.sh
DONE
"""


def marked(directory: Path, test: str, mark: str) -> list[int]:
    rows = lines(directory, test)
    assert all(set(message) == {"ns", "level", "text"} for row in rows for message in row.get("kernel", []))
    return [row["trial"] for row in rows if any(mark in m["text"] for m in row.get("kernel", []))]


@pytest.mark.parametrize("more", [["--prepare", "true"], []], ids=["one by one", "within the engine"])
def test_a_message_stands_in_the_trial_during_which_it_came(
    tmp_path: Path, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"etude-test-{os.getpid()}-{tmp_path.name}"
    monkeypatch.setenv("MARK", mark)
    script = tmp_path / "counted.sh"
    script.write_text(COUNTED)
    script.chmod(0o755)
    done = called("bench", "-n", "m", "--trials", "6", *more, "-o", "r", "./counted.sh", cwd=tmp_path)
    assert marked(tmp_path / "r", "m", mark) == [3]
    [row] = [row for row in lines(tmp_path / "r", "m") if row["trial"] == 3]
    assert [m["level"] for m in row["kernel"] if mark in m["text"]] == [4]
    assert "warned in trial 3" in done.stdout
    assert [s["kernel_log"] for s in experiment(tmp_path / "r")["sittings"]] == [None]
    assert "warned in trial 3" in called("stats", "r", cwd=tmp_path).stdout


def test_a_script_s_trial_has_its_messages_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"etude-test-{os.getpid()}-{tmp_path.name}"
    monkeypatch.setenv("MARK", mark)
    script = tmp_path / "counted.sh"
    script.write_text(COUNTED)
    script.chmod(0o755)
    (tmp_path / "s.ap").write_text(SCRIPT)
    called("run", "-o", "r", "s.ap", cwd=tmp_path)
    assert len(marked(tmp_path / "r", "marked", mark)) == 1
    machine = experiment(tmp_path / "r")["machine"]
    programs = machine["before"]["programs"]
    assert set(programs) == {"./counted.sh", "/bin/sh", "cat", "sort"}
    assert len(programs["./counted.sh"]["sha256"]) == 64
    assert machine["after"]["programs"] == programs


def test_who_may_not_read_the_log_measures_all_the_same_and_is_told_once(tmp_path: Path) -> None:
    hidden = "mount --bind /dev/null /dev/kmsg && mount -o remount,bind,nodev /dev/kmsg && exec "
    words = [ETUDE, "bench", "--trials", "3", "-o", "r", "true"]
    subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", hidden + shlex.join(words)],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    [sitting] = experiment(tmp_path / "r")["sittings"]
    assert sitting["kernel_log"] == "/dev/kmsg: Permission denied"
    assert len(lines(tmp_path / "r", "true")) == 4
