from __future__ import annotations

from pathlib import Path

import pytest

from etude.iotrace.profile import Profile, profile_of
from etude.iotrace.reader import Trace, read_trace
from support.traces import COPY, Make, imported


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A trace from lines as strace writes them."""

    def made(lines: str) -> Trace:
        text = tmp_path / "lines.strace"
        text.write_text(lines)
        return read_trace(imported(text, tmp_path / f"{len(list(tmp_path.iterdir()))}.trace"))

    return made


@pytest.fixture
def copied(tmp_path: Path) -> Profile:
    """What tests/data/copy.strace amounts to."""
    return profile_of(read_trace(imported(COPY, tmp_path / "copy.trace")))
