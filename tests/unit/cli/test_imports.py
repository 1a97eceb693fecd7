"""What is loaded when: the first answer must not wait for libraries that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import TESTS


def loaded(script: str, directory: Path) -> list[str]:
    """Which of the heavy libraries are loaded where the script says `mark()`, a line for each mark."""
    prelude = """
import sys
HEAVY = ("argparse", "numpy", "scipy.special", "scipy.stats", "polars", "rich", "asyncio", "jinja2", "bokeh")
HEAVY += ("sqlalchemy", "alembic", "msgspec", "etude.why.timeline")
def mark():
    print("loaded:", *(name for name in HEAVY if name in sys.modules), flush=True)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", prelude + script],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        line.removeprefix("loaded:").strip()
        for line in done.stdout.splitlines()
        if line.startswith("loaded:")
    ]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_loads_nothing(tmp_path: Path, arguments: list[str]) -> None:
    assert loaded(f"from etude.cli.main import main\nmain({arguments})\nmark()", tmp_path) == [""]


def test_help_of_a_verb_reads_no_results(tmp_path: Path) -> None:
    script = """
from contextlib import suppress
from etude.cli.main import main
with suppress(SystemExit):
    main(["bench", "--help"])
print("loaded:", *sorted({"orjson", "tarfile", "etude.results.bundle"} & sys.modules.keys()), flush=True)
"""
    assert loaded(script, tmp_path) == [""]


def test_importing_etude_loads_nothing(tmp_path: Path) -> None:
    assert loaded("import etude\nmark()", tmp_path) == [""]


def test_an_error_of_usage_does_not_wait_for_numbers(tmp_path: Path) -> None:
    script = "from etude.cli.main import main\nmain(['bench'])\nmark()"
    (names,) = loaded(script, tmp_path)
    assert names == "argparse"


@pytest.mark.parametrize("arguments", [["surface", "--simulate", "DB_TP", "--count", "3", "-q"],
                                       ["peak", "--simulate", "mm1:700", "-q"]], ids=["surface", "peak"])  # fmt: skip
def test_searches_and_surfaces_compute_in_one_thread_and_what_they_start_inherits_nothing(
    tmp_path: Path, arguments: list[str]
) -> None:
    script = f"""
import os, sys
from etude.cli.main import main
main({arguments})
print("loaded:", len(os.listdir("/proc/self/task")), "OPENBLAS_NUM_THREADS" in os.environ)
"""
    before = os.environ.pop("OPENBLAS_NUM_THREADS", None)
    try:
        assert loaded(script, tmp_path) == ["1 False"]
    finally:
        if before is not None:
            os.environ["OPENBLAS_NUM_THREADS"] = before


BENCH = """
from support.fakes import World, around
from etude.present.progress import bench as live_display
from etude.cli.main import main
from etude.experiment import run as running
world = World({{"a": around(1.0), "b": around(2.0)}})
world.before = lambda number, world: mark() if number in (1, 2, 10) else None
running.engine_maker = lambda: world.make_engine
main(["bench", "-o", "r", *{commands}])
mark()
"""


@pytest.mark.parametrize("commands", [["a"], ["a", "b"]])
def test_bench_needs_no_numbers_before_its_first_trial_and_no_scipy_stats_before_its_verdict(
    tmp_path: Path, commands: list[str]
) -> None:
    first, second, tenth, end = loaded(BENCH.format(commands=commands), tmp_path)
    assert set(first.split()) <= {"argparse"}
    assert set(second.split()) <= {"argparse"}
    assert "scipy.stats" not in tenth
    assert "polars" not in end
    assert "scipy.stats" not in end
    assert "etude.why.timeline" not in end
