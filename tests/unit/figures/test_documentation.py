"""Every command in docs/howto/figures.md runs, prints what stands there, and draws the picture that stands below it."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from etude.figures import KINDS
from support.places import ROOT

pytestmark = pytest.mark.more

TEXT = (ROOT / "docs" / "howto" / "figures.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PICTURES = re.findall(r"\(../images/figure-(\w+)\.png\)", TEXT)
PROGRAMS = {
    "graphit": ["-m", "etude.cli.graphit"],
    "etude": ["-m", "etude.cli.main"],
    "python3": [],
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all commands ran, each having printed what the page says."""
    directory = tmp_path_factory.mktemp("figures")
    data = ROOT / "tests" / "data"
    tables = [data / f"{name}.csv" for name in ("cooling", "linking", "buffers")]
    for path in (*(data / "postmark").iterdir(), *tables):
        shutil.copy(path, directory)
    for block in BLOCKS:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            name, *words = shlex.split(line)
            done = subprocess.run(
                [sys.executable, *PROGRAMS[name], *words],
                cwd=directory,
                env=os.environ | {"PYTHONUTF8": "1"},
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert (done.returncode, done.stderr) == (0, ""), line
            assert done.stdout == expected, line
    return directory


def test_every_command_prints_what_stands_there(here: Path) -> None:
    assert len(BLOCKS) > 7
    assert (here / "lines-again.png").exists()


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_what_its_command_draws(name: str, here: Path) -> None:
    kept = ROOT / "docs" / "images" / f"figure-{name}.png"
    if os.environ.get("ETUDE_NEW_PICTURES"):
        image = Image.open(here / f"{name}.png").convert("RGB")
        image.convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(kept, optimize=True)
    now, then = (
        np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("L"), dtype=np.float64) / 255.0
        for path in (here / f"{name}.png", kept)
    )
    assert now.shape == pytest.approx(then.shape, abs=2)
    rows, columns = (min(a, b) for a, b in zip(now.shape, then.shape, strict=True))
    assert float(np.sqrt(np.mean((now[:rows, :columns] - then[:rows, :columns]) ** 2))) < 0.05


def test_every_kind_is_named() -> None:
    for kind in KINDS:
        assert kind in TEXT.lower() or kind.rstrip("s") in TEXT.lower()
