"""The whole lab: both sweeps, resumed where it was interrupted."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from etude.errors import InputError, Interrupted
from etude.iolab import lab
from etude.iolab.lab import Lab, begin, read_lab, run_lab
from etude.results.reader import load_results
from etude.results.results import Results

SMALL = {"buffers": {"buffers": "4K..16K"}, "linking": {"totals": "1..4"}}


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "SWEEPS", SMALL)


@pytest.mark.usefixtures("_small")
def test_an_interrupted_lab_goes_on_with_its_own_options_and_measures_nothing_twice(
    laboratory: Any, tmp_path: Path
) -> None:
    from etude.experiment.run import run as measure
    from etude.iolab.sweeps import make_plan, make_sweep

    directory = tmp_path / "lab"
    directory.mkdir()
    begin(directory, Lab(str(tmp_path), trials=2, seed=7))
    done: list[tuple[str, str]] = []

    def run(where: str, *, directory: Path, seed: int | None, **options: Any) -> Results:
        if interrupted and directory.name == "linking":
            raise Interrupted(2, "ended by SIGINT")
        done.append(("run", directory.name))
        plan = make_plan(make_sweep(where, **options), seed)
        return measure(plan, directory, make_engine=laboratory.world.make_engine, verb="io sweep").results

    def resume(directory: Path) -> Results:
        done.append(("resume", directory.name))
        return load_results(directory)

    interrupted = True
    with pytest.raises(Interrupted) as ended:
        run_lab(read_lab(directory), directory, run, resume, "svg")
    assert str(ended.value).endswith(f"etude io lab --resume {directory}")
    interrupted = False
    buffers, linking = run_lab(read_lab(directory), directory, run, resume, "svg")
    assert done == [("run", "buffers"), ("resume", "buffers"), ("run", "linking")]
    assert (buffers.swept.over, linking.swept.over) == ("buffer", "total")
    for name, rows in (("buffers", 3 * 3 * 2), ("linking", 2 * 3 * 2)):
        with (directory / f"{name}.csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == rows
    plan = json.loads((directory / "linking" / "experiment.json").read_text())["plan"]
    assert plan["seed"] == 7


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "holds no lab.json"),
        ("{}", "version 1"),
        ("[]", r"lab\.json: .*\[\]"),
        ('{"format": "etude-io-lab", "version": 2, "where": "/"}', "version 1"),
        ('{"format": "etude-io-lab", "version": 1, "where": 3}', r"lab\.json: where: "),
        ('{"format": "etude-io-lab", "version": 1, "where": "/", "trials": "5"}', r"lab\.json: trials: "),
    ],
)
def test_what_is_no_lab_is_refused(tmp_path: Path, record: str | None, reason: str) -> None:
    if record is not None:
        (tmp_path / "lab.json").write_text(record)
    with pytest.raises(InputError, match=reason) as refused:
        read_lab(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_lab_without_a_record_names_the_sweeps_that_can_be_resumed_alone(tmp_path: Path) -> None:
    (tmp_path / "buffers").mkdir()
    (tmp_path / "buffers" / "experiment.json").write_text("{}")
    with pytest.raises(InputError, match=f"sweep --resume: {tmp_path}/buffers$"):
        read_lab(tmp_path)
    with pytest.raises(InputError, match="holds results already"):
        begin(tmp_path, Lab("/"))
