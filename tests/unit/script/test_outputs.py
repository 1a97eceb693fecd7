"""What workers print: each EXEC's part of it."""

from __future__ import annotations

from pathlib import Path

from etude.script.remote import WorkerGroup
from etude.script.rows import keep_outputs, open_outputs, tail


def printed(directory: Path, text: str) -> str:
    """What one EXEC of trial 1 is found to have printed."""
    (output,) = open_outputs(str(directory), 1)
    with open(output, "a", encoding="utf-8") as file:
        file.write(text)
    (kept,) = keep_outputs([output], 1)
    return tail(kept)


def test_each_exec_has_its_own_part_of_a_trials_log(tmp_path: Path) -> None:
    assert [printed(tmp_path, text) for text in ("first\n", "", "third\n")] == ["first\n", "", "third\n"]
    assert (tmp_path / "logs" / "0001-0.log").read_text() == "first\nthird\n"


def test_what_a_killed_session_has_left_is_of_no_later_exec(tmp_path: Path) -> None:
    (output,) = open_outputs(str(tmp_path), 1)
    Path(output).write_text("rate=1\n")
    (tmp_path / "aplog-0").write_text("[measurement]\n")
    WorkerGroup(("local",), 1, str(tmp_path)).open()
    assert not (tmp_path / "aplog-0").exists()
    assert printed(tmp_path, "rate=2\n") == "rate=2\n"
    assert (tmp_path / "logs" / "interrupted-0.log").read_text() == "rate=1\n"


def test_a_cut_output_begins_with_a_whole_line(tmp_path: Path) -> None:
    (output,) = open_outputs(str(tmp_path), 1)
    Path(output).write_text("rate=12345\nrate=7\n")
    (kept,) = keep_outputs([output], 1)
    assert tail(kept, 10) == "rate=7\n"
