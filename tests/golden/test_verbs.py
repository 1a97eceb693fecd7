"""What every verb prints of stored inputs, how it ends and what it writes is as it was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from golden.calls import CALLS
from golden.running import called, settled
from support.builders import still_machine
from support.golden import compare_file

GOLDEN = Path(__file__).parent / "verbs"
OTHER_HELP = "argparse of Python 3.13 lays out help in another way than that of the golden files"


@pytest.mark.parametrize("name", CALLS)
def test_a_call_says_what_it_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if CALLS[name].endswith("--help") and sys.version_info >= (3, 13):
        pytest.skip(OTHER_HELP)
    still_machine(monkeypatch)
    with settled(monkeypatch, tmp_path):
        text = called(CALLS[name], tmp_path)
    compare_file(GOLDEN / f"{name}.txt", text)
