"""The bench of surfaces runs within a minute, with all mappers, and tells what they came to."""

import subprocess
import sys

import pytest

from support.places import BENCH

pytestmark = pytest.mark.beside

BENCH = BENCH / "surface" / "run.py"


def test_the_quick_bench_shows_all_mappers(tmp_path):
    record, figures = tmp_path / "surface.md", tmp_path / "figures"
    words = [sys.executable, str(BENCH), "--quick", "--seed", "20261122"]
    words += ["--record", str(record), "--figures", str(figures)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = record.read_text(encoding="utf-8")
    assert page == done.stdout
    for name in ("linear", "linear+seed", "binsearch", "binsearch+seed", "model", "ours", "ours+skip"):
        assert f"\n| {name} |" in page
    assert "| NO |" not in page
    assert "| next of 10 000 configurations" in page
    assert len(list(figures.glob("*.png"))) == 3
