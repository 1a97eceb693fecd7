"""Every command and every piece of Python in docs/howto/getstats.md runs, and prints what stands there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from etude.analysis.getstats.options import USAGE
from etude.analysis.transforms import TRANSFORMS
from support.places import ROOT

pytestmark = pytest.mark.beside

TEXT = (ROOT / "docs" / "howto" / "getstats.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PROGRAMS = {
    "getstats": [str(Path(sys.executable).parent / "getstats")],
    "etude": [str(Path(sys.executable).parent / "etude"), "stats", "--style", "autopilot"],
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name in ("gcc-ext2.res", "gcc-ext3.res", "autopilot-figure-2.csv"):
        shutil.copy(ROOT / "tests" / "data" / name, tmp_path)
    return tmp_path


def output(command: list[str], directory: Path) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), command
    return done.stdout


@pytest.mark.parametrize(("program", "each"), [("getstats", 1), ("etude", 4)])
def test_commands_print_what_stands_there(program: str, each: int, here: Path) -> None:
    blocks = [text for language, text in BLOCKS if language == "console"]
    assert len(blocks) >= 5
    for text in blocks[::each]:
        line, _, expected = text.partition("\n")
        _, name, *words = shlex.split(line)
        assert name == "getstats"
        lines = output([*PROGRAMS[program], *words], here).splitlines()
        assert [printed.rstrip() for printed in lines] == expected.splitlines(), line


def test_python_runs(here: Path) -> None:
    (text,) = [text for language, text in BLOCKS if language == "python"]
    lines = output([sys.executable, "-c", text], here).splitlines()
    assert float(lines[0]) > 0
    assert lines[-1].startswith("epoch ")


def test_every_transform_is_named() -> None:
    for name in TRANSFORMS:
        assert f"--{name}" in TEXT
        assert f"--{name}" in USAGE
