"""A bundle of results that have lost lines is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import InputError
from etude.present.bundle import gather
from support import pages


def test_results_that_have_lost_lines_are_not_packed(tmp_path: Path) -> None:
    samples = {name: [0.01, 0.011, 0.012] for name in "AB"}
    session = {"sitting": 1, "boot_id": "boot", "host": "here", "start": "2026-01-01T10:00:00Z"}
    session |= {"end": "2026-01-01T10:05:00Z", "how_ended": "complete"}
    entries = {name: {"lines": 3} for name in samples}
    directory = pages.results(tmp_path / "r", samples, entries=entries, sittings=[session])
    gather([directory])
    file = directory / "test-0" / "results.jsonl"
    whole = file.read_text(encoding="utf-8")
    file.write_text("".join(whole.splitlines(keepends=True)[:-1]), encoding="utf-8")
    with pytest.raises(InputError):
        gather([directory])
    file.unlink()
    file.symlink_to("nowhere")
    with pytest.raises(InputError):
        gather([directory])
