"""Trials that the engine repeats by itself."""

import json
from pathlib import Path

from etude.engine import Engine, Launch, Repeat, Worker


def test_no_trial_begins_once_the_time_has_passed_and_the_first_always_does(tmp_path: Path) -> None:
    with Engine() as engine:
        for number, within_s in enumerate((0.3, 0.0)):
            journal = tmp_path / f"journal-{number}"
            repeat = Repeat(100, str(journal), 1, 1, {}, within_s)
            ended = engine.repeat(Launch((Worker(("sleep", "0.1")),), repeat=repeat), lambda _: None)
            rows = [json.loads(line) for line in journal.read_text().splitlines()]
            assert ended.stopped is None
            assert len(rows) == ended.done
            assert all(row["kept"] for row in rows)
            assert all(row["start_ns"] - rows[0]["start_ns"] < (within_s + 0.05) * 1e9 for row in rows[1:])
            assert 1 <= ended.done <= 4
    assert ended.done == 1
