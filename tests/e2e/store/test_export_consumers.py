"""What `etude export` writes is read by the programs that it is for."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from etude.export import export_to
from etude.export.document import Compared, Document, one_line
from support import consumers
from support.made_documents import BEGAN, RUN, point

pytestmark = [pytest.mark.beside]

FAST, SLOW = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0], [1.5, 1.52, 1.48, 1.51, 1.49, 1.5]
PAIR = Document(
    (
        point("sort", "elapsed", [*FAST]),
        point("sort", "user", [x / 2 for x in FAST]),
        point("sort", "system", [x / 4 for x in FAST]),
        point("sort", "peak_memory", [1e6] * 6),
        point("sort -r", "elapsed", [*SLOW]),
    ),
    "elapsed",
    compared=(Compared("sort", "sort -r", "elapsed", 1.5, 1.4, 1.6, True, ("It takes 1.5 times as long.",)),),
)


def odd(count: int) -> Document:
    """Tests of many odd names, of which some have no value."""
    names = {one_line(name): name for name in _odd_names()}
    points = [
        point(name, metric, [1.0, None, 2.5] if number % 3 else [], parameters=((name, name),))
        for number, name in enumerate(list(names.values())[:count])
        for metric in ("elapsed", "tps")
    ]
    return Document(tuple(points), "elapsed")


def _odd_names() -> Iterator[str]:
    yield from [
        'a "b"',
        "a|b",
        "a\nb",
        "x-8",
        "naïve ☃",
        "a,b",
        "#x",
        "<b>&amp;",
        "\x00\x1b",
        "'",
        "a\\",
        "{}",
        "a\\n",
    ]


def ran(*command: str | Path, **options: str) -> str:
    environment = os.environ | options
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def written(directory: Path, form: str, document: Document) -> Path:
    path = directory / f"exported-{form}"
    path.write_text(export_to(form, document).text, encoding="utf-8")
    return path


def test_benchstat_compares_two_results_as_they_are(tmp_path: Path) -> None:
    program = consumers.benchstat()
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(export_to("go", Document((point("sort", "elapsed", [*FAST]),), "elapsed")).text)
    new.write_text(export_to("go", Document((point("sort", "elapsed", [*SLOW]),), "elapsed")).text)
    table = ran(program, "-format", "csv", old, new)
    (row,) = [line for line in csv.reader(table.splitlines()) if line and line[0] == "sort"]
    assert float(row[1]) == pytest.approx(1.0)
    assert float(row[3]) == pytest.approx(1.5)
    assert row[5] == "+50.00%"


def test_benchstat_reads_every_line_of_odd_names(tmp_path: Path) -> None:
    path = written(tmp_path, "go", odd(99))
    done = subprocess.run(
        [consumers.benchstat(), path], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    assert "tps-1/s" in done.stdout


@pytest.mark.parametrize("version", consumers.HYPERFINE)
def test_the_scripts_of_hyperfine_read_it(tmp_path: Path, version: str) -> None:
    scripts = consumers.hyperfine_scripts(version)
    path = written(tmp_path, "hyperfine" if version < "2" else "hyperfine-2", PAIR)
    found = ran(sys.executable, scripts / "advanced_statistics.py", path)
    assert "Command 'sort -r'" in found
    assert re.search(r"mean: +1\.500 s", found)
    assert "runs:          6" in found
    assert "p = " in ran(sys.executable, scripts / "welch_ttest.py", path)
    ran(sys.executable, scripts / "plot_whisker.py", path, "-o", tmp_path / "whisker.png", MPLBACKEND="agg")
    assert (tmp_path / "whisker.png").stat().st_size > 1000


def test_the_scripts_of_hyperfine_2_read_time_of_the_processor(tmp_path: Path) -> None:
    alone = replace(PAIR, points=PAIR.points[:4])
    path = written(tmp_path, "hyperfine-2", alone)
    script = consumers.hyperfine_scripts("2.0.0") / "advanced_statistics.py"
    assert "mean:    0.750 s" in ran(sys.executable, script, "--metric", "time_cpu", path)
    assert "mean:   0.954 MiB" in ran(sys.executable, script, "--metric", "memory_peak_resident", path)


def test_otava_finds_a_step_in_an_exported_history(tmp_path: Path) -> None:
    program = consumers.python()
    runs = [
        replace(RUN, commit=f"c{n}", measured=BEGAN + timedelta(days=n), committed=BEGAN + timedelta(days=n))
        for n in range(40)
    ]
    points = [
        point("sort -k 2", "elapsed", [level + (n % 5) / 100], run)
        for n, run in enumerate(runs)
        for level in [1.0 if n < 20 else 1.5]
    ]
    path = written(tmp_path, "otava", Document(tuple(points), "elapsed"))
    configuration = tmp_path / "otava.yaml"
    configuration.write_text(
        f"tests:\n  sort:\n    type: csv\n    file: {path}\n    time_column: time\n    attributes: [commit]\n"
        "    metrics:\n      elapsed:\n        column: sort -k 2.elapsed\n        direction: -1\n"
    )
    command = ["analyze", "sort", "--since", "2025-01-01", "--until", "2027-01-01", "--output", "json"]
    found = json.loads(ran(program, "-m", "otava.main", *command, OTAVA_CONFIG=str(configuration)))
    ((test, changes),) = found.items()
    assert test == "sort"
    (change,) = changes
    assert change["attributes"]["commit"] == "c20"


def test_the_parser_of_prometheus_reads_every_sample(tmp_path: Path) -> None:
    document = odd(99)
    path = written(tmp_path, "openmetrics", document)
    program = (
        "import json, sys\n"
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n"
        "text = open(sys.argv[1], encoding='utf-8', newline='').read()\n"
        "print(json.dumps([[f.name, f.unit, s.labels, s.value] for f in read(text) for s in f.samples]))\n"
    )
    samples = json.loads(ran(consumers.python(), "-c", program, path))
    means = {(s[2]["test"], s[2]["metric"]): s[3] for s in samples if s[2].get("statistic") == "mean"}
    assert means == {(p.test, p.metric): p.figures.mean for p in document.points if p.figures}
    assert {"etude_elapsed_seconds", "etude_tps_per_second", "etude_run", "etude_trials"} >= {
        s[0] for s in samples
    }


def test_junitparser_reads_cases_errors_and_failures(tmp_path: Path) -> None:
    document = replace(odd(99), compared=PAIR.compared)
    path = written(tmp_path, "junit", document)
    program = (
        "import json, sys\n"
        "from junitparser import JUnitXml\n"
        "found = JUnitXml.fromfile(sys.argv[1])\n"
        "print(json.dumps([found.tests, found.failures, found.errors, [len(list(s)) for s in found]]))\n"
    )
    lost = sum(p.metric == "elapsed" and not p.figures for p in document.points)
    tests = len({p.test for p in document.points})
    assert json.loads(ran(consumers.python(), "-c", program, path)) == [tests + 1, 1, lost, [tests, 1]]


def test_benchadapt_makes_results_that_can_be_published(tmp_path: Path) -> None:
    document = replace(PAIR, repository="https://github.com/org/name", reason="nightly")
    path = written(tmp_path, "conbench", document)
    program = (
        "import json, sys, warnings\n"
        "warnings.simplefilter('error')\n"
        "from benchadapt import BenchmarkResult\n"
        "results = [BenchmarkResult(**r) for r in json.load(open(sys.argv[1]))]\n"
        "print(json.dumps([r.to_publishable_dict() for r in results]))\n"
    )
    results = json.loads(ran(consumers.python(), "-c", program, path))
    assert [r["stats"]["data"] for r in results if r["tags"]["metric"] == "elapsed"] == [FAST, SLOW]
    assert results[0]["github"]["commit"] == RUN.commit
