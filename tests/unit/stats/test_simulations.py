"""bench/statistics: it runs, says the same again, and its own series are what they state."""

import importlib.util
import re
import subprocess
import sys

import numpy as np
import pytest

from support.places import BENCH

FOLDER = BENCH / "statistics"


RESULTS = (FOLDER / "results.md").read_text(encoding="utf-8")


def quick(*options):
    command = [sys.executable, FOLDER / "run.py", "--quick", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def labels(text):
    """Headings, and the first cell of every row: what was simulated, without what was found."""
    return re.findall(r"^(?:#+ .*|\| [^|]*)", text, re.MULTILINE)


@pytest.mark.more
def test_all_that_is_simulated_now_is_in_the_tables_that_were_recorded():
    page = quick()
    assert labels(page) == labels(RESULTS)
    assert "nan" not in page


def test_a_section_can_be_run_by_itself_and_says_the_same_again(tmp_path):
    page = quick("--only", "designs")
    assert re.findall(r"^## .*", page, re.MULTILINE) == ["## Designs"]
    quick("--only", "designs", "-o", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page
    assert quick("--only", "designs", "--seed", "1") != page


def test_a_section_that_there_is_not_is_refused():
    command = [sys.executable, FOLDER / "run.py", "--quick", "--only", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'nothing'" in done.stderr


def own_series():
    spec = importlib.util.spec_from_file_location("own_series", FOLDER / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        patch.syspath_prepend(str(FOLDER))
        spec.loader.exec_module(module)
    return module.NEW


@pytest.mark.parametrize("series", own_series(), ids=lambda series: series.name)
def test_each_own_series_has_the_mean_that_it_states(series):
    drawn = series.draw(np.random.default_rng(61), 4000, 80)
    assert drawn.shape == (4000, 80)
    assert (drawn > 0.0).all()
    assert drawn[:, 40:].mean() == pytest.approx(series.mean, abs=0.003)
