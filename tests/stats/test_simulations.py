"""bench/statistics: it runs, says the same again, and its own series are what they state."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "bench" / "statistics"


def quick(*options):
    command = [sys.executable, FOLDER / "run.py", "--quick", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_quick_run_writes_all_tables_and_the_same_again(tmp_path):
    page = quick()
    assert len(re.findall(r"^## ", page, re.MULTILINE)) == 10
    assert len(re.findall(r"^\|---", page, re.MULTILINE)) == 11
    assert "nan" not in page
    quick("-o", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page
    assert quick("--seed", "1") != page


def own_series():
    spec = importlib.util.spec_from_file_location("own_series", FOLDER / "own_series.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.OWN


@pytest.mark.parametrize("series", own_series(), ids=lambda series: series.name)
def test_each_own_series_has_the_mean_that_it_states(series):
    drawn = series.draw(np.random.default_rng(61), 4000, 80)
    assert drawn.shape == (4000, 80)
    assert (drawn > 0.0).all()
    assert drawn[:, 40:].mean() == pytest.approx(series.mean, abs=0.003)
