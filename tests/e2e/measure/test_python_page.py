"""The examples of docs/howto/python.md run as they are printed, in order, in one interpreter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import ROOT

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "python.md").read_text(encoding="utf-8"), re.DOTALL
)


@pytest.mark.beside
def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 4
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(BLOCKS)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for file, head in (("bars.pdf", b"%PDF"), ("peak.png", b"\x89PNG")):
        assert (tmp_path / file).read_bytes().startswith(head)
    assert "Replay" in done.stdout
