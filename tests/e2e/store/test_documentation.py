"""What docs/howto/store.md shows runs as it is printed, and what it says of the tables is what they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.store.schema import METADATA, REVISION
from support.places import ROOT

pytestmark = pytest.mark.beside

BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.needs_program("git")
def test_the_page_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("ETUDE_STORE", None)
    said = ""
    for language, text in BLOCK.findall((ROOT / "docs" / "howto" / "store.md").read_text()):
        commands = (
            [[sys.executable, "-c", text]]
            if language == "python"
            else [["sh", "-c", line[2:]] for line in text.splitlines() if line.startswith("$ ")]
        )
        for command in commands:
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0, (command[-1], done.stdout, done.stderr)
            said += done.stdout
    assert re.findall(r"^monday: .*?(added|already)\b.* result 1\b", said, re.MULTILINE) == [
        "added",
        "already",
    ]
    assert "1 result, " in said


def test_the_tables_are_those_of_the_page_of_formats() -> None:
    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    section = page[page.index("\n## The store\n") : page.index("\n## The store's lists")]
    assert f"`{REVISION}`" in section
    rows = {
        row.split("|")[1].strip(" `"): row for row in section.splitlines() if re.match(r"\| `\w+` \|", row)
    }
    assert set(rows) == set(METADATA.tables)
    for name, table in METADATA.tables.items():
        missing = [
            column.name for column in table.c if column.name != "id" and f"`{column.name}`" not in rows[name]
        ]
        assert not missing, (name, missing)
