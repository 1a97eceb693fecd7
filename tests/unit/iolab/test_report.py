"""A sweep has a part of its own in a report: its curves are judged, not its tests one against another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from etude.analysis.subject import subject_of
from etude.cli.analyse.report import parts_of, sweeps_of_labs
from etude.cli.main import main
from etude.iolab.points import Gaps, gaps_of, swept_of
from etude.iolab.sweeps import make_sweep
from etude.present.page import content_of, gather
from etude.results.series import no_trials
from unit.iolab.conftest import Laboratory


def test_the_tests_of_a_sweep_are_not_compared_with_the_smallest_size(laboratory: Laboratory) -> None:
    place = str(laboratory.sweep(buffers="4K..64K", trials=4).directory)
    found = gather([place])
    assert found.verdicts[0].comparisons == ()
    parts = parts_of([place])
    content = content_of(found, parts=parts)
    assert content.headline[: len(parts[0].answer)] == parts[0].answer
    assert content.comparisons.rows == ()
    assert len(parts[0].answer) == 1
    assert {"what", "real", "large", "against"} == set(parts[0].questions)
    (picture,) = parts[0].pictures
    assert picture.figure.x.scale == "log"
    (table,) = parts[0].tables
    assert len(table.rows) == 5
    assert [table.headings[column] for column in (0, 1, 4, 7)] == [
        "buffer size",
        "untouched",
        "touched",
        "huge",
    ]


def test_gaps_are_tests_without_trials_the_storage_and_cold_reads(laboratory: Laboratory) -> None:
    results = laboratory.sweep(buffers="4K..64K", trials=4, storage=False)
    subject = subject_of(results)
    assert gaps_of(subject, swept_of(subject)) == Gaps((), True, True)
    lost = [
        no_trials(series.test, series.parameters) if series.test == "buffer=64KiB touched" else series
        for series in subject.tests
    ]
    subject = replace(subject, tests=tuple(lost))
    assert gaps_of(subject, swept_of(subject)).tests == ("buffer=64KiB touched",)


def test_a_lab_is_reported_as_its_sweeps(laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.run(make_sweep(laboratory.directory, trials=4, buffers="4K..64K"), "buffers")
    Path(tmp_path, "lab.json").write_text(json.dumps({"format": "etude-io-lab", "version": 1, "where": "."}))
    assert sweeps_of_labs([str(tmp_path)]) == [str(tmp_path / "buffers")]
    laboratory.run(make_sweep(laboratory.directory, trials=4, totals="4K..64K"), "linking")
    assert sweeps_of_labs([str(tmp_path), "other"]) == [
        *(str(tmp_path / name) for name in ("buffers", "linking")),
        "other",
    ]
    assert main(["report", str(tmp_path)]) == 0
    text = (tmp_path / "report.html").read_text("utf-8")
    assert [text.count(f'<section id="sweep-{number}"') for number in (0, 1)] == [1, 1]


def test_sweeps_over_different_things_are_not_compared(laboratory: Laboratory) -> None:
    laboratory.run(make_sweep(laboratory.directory, trials=4, buffers="4K..64K"), "buffers")
    laboratory.run(make_sweep(laboratory.directory, trials=4, totals="4K..64K"), "linking")
    found = gather([str(laboratory.directory / name) for name in ("buffers", "linking")])
    assert (found.across, found.without) == ((), ())
    assert [differences for _, differences in found.machines] == [()]
