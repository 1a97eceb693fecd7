"""Auto-pilot's files after a session that was killed: each trial that has rows has its blocks."""

from __future__ import annotations

from pathlib import Path

from etude.results.model import Measurement
from etude.results.res import parse_blocks, row_of_block
from etude.script.resfiles import ResFiles
from support.builders import measurement


def trial(number: int) -> list[Measurement]:
    return [measurement(trial=number, worker=worker) for worker in (0, 1)]


def epochs(path: Path) -> list[tuple[int, int]]:
    """The epoch and worker of each block that can be read."""
    rows = [row_of_block(block) for block in parse_blocks(path.read_text()) if block.name == "measurement"]
    return [(row["trial"], row["worker"]) for row in rows if not isinstance(row, str)]


def test_blocks_that_a_killed_session_did_not_write_are_added(tmp_path: Path) -> None:
    files = ResFiles(tmp_path)
    files.begin("t.res", {"system": {"kernel": "6"}})
    files.append("t.res", trial(1), [])
    files.close()
    text = (tmp_path / "t.res").read_text()
    files.complete("t.res", [*trial(1), *trial(2)])
    files.append("t.res", trial(3), [])
    files.close()
    assert epochs(tmp_path / "t.res") == [(n, worker) for n in (1, 2, 3) for worker in (0, 1)]
    files.complete("t.res", [*trial(1), *trial(2), *trial(3)])
    assert epochs(tmp_path / "t.res") == [(n, worker) for n in (1, 2, 3) for worker in (0, 1)]

    (tmp_path / "t.res").write_text(text[: text.rindex("status")])  # cut short in the second worker's block
    files.complete("t.res", trial(1))
    assert epochs(tmp_path / "t.res") == [(1, 0), (1, 1)]
