"""The commands that docs/howto/report.md prints run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import DOCS

pytestmark = pytest.mark.beside

DOCUMENT = DOCS / "howto" / "report.md"


def test_the_commands_of_the_document_run_as_they_are_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    commands = re.findall(r"^\$ (.+)$", DOCUMENT.read_text(), re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
    assert (tmp_path / "sorting" / "report.html").stat().st_size < 1_700_000
    assert (tmp_path / "sorting.tex").read_text().count(r"\end{table}") == 2


def test_the_document_has_the_questions_of_the_page() -> None:
    from etude.present.page.answers import QUESTIONS

    text = DOCUMENT.read_text()
    assert all(f"| {question} |" in text for question in QUESTIONS.values())
