"""Every command of the page on exports runs as it is printed, and every format has its section."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.export import FORMATS
from support.places import DOCS

pytestmark = pytest.mark.beside

PAGE = (DOCS / "howto" / "export.md").read_text()
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_of_exports_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    commands = [
        line[2:] for block in BLOCK.findall(PAGE) for line in block.splitlines() if line.startswith("$ ")
    ]
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(commands)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].count(",") == 2, "time, commit and mean of the stored result"


@pytest.mark.parametrize("form", FORMATS)
def test_the_page_of_exports_has_each_format(form: str) -> None:
    assert f"`{form}`" in PAGE
    assert f"--format {form}" in PAGE or form == "github-bigger"
