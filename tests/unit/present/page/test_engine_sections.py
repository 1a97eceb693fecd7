"""The page of a replay or a load answers each question, in a file of its own and in the outputs of a test's trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from etude.analysis.loads import load_figures, window_figures
from etude.analysis.replays import time_pairs
from etude.figures.data import Bars, Curve
from etude.figures.replays import lateness, recorded_and_replayed
from etude.figures.responses import distributions, over_time
from etude.present.page import content_of, gather
from etude.present.page.answers import QUESTIONS
from etude.present.page.setup import setups_of
from etude.present.section import Content, cell_text
from etude.present.to_html import to_html
from etude.results.engine_reports import LoadReport, ReplayReport, read_report
from golden.corpus import lay_out
from support import pages

INPUTS = ("replays/faithful.json", "replays/changed.json", "load/overloaded.jsonl", "load/directory.jsonl")


def content(*paths: Path) -> Content:
    return content_of(gather(list(map(str, paths))))


def with_outputs(directory: Path, text: str) -> Path:
    """Tests A, whose trials have left this output, and B."""
    path = pages.results(directory, {"A": [0.1, 0.2, 0.3], "B": [0.1, 0.2, 0.3]})
    logs = path / "test-0" / "logs"
    logs.mkdir()
    for trial in (1, 2, 3):
        (logs / f"{trial:04d}-0.log").write_text(text)
    return path


@pytest.mark.parametrize("name", INPUTS)
def test_a_file_alone_has_a_verdict_an_answer_to_each_question_and_no_empty_parts(
    tmp_path: Path, name: str
) -> None:
    found = content(lay_out(name, tmp_path))
    assert found.headline
    assert [answer.key for answer in found.answers] == list(QUESTIONS)
    assert all(sentence for answer in found.answers for sentence in answer.sentences)
    assert found.only_parts
    (part,) = found.parts
    assert part.pictures
    assert all(table.rows for table in part.tables)
    page = to_html(found)
    assert 'id="tests"' not in page
    assert f'id="{part.key}"' in page


def test_files_and_results_are_on_one_page(tmp_path: Path) -> None:
    replay, load = (lay_out(name, tmp_path) for name in INPUTS[1:3])
    found = content(replay, load, pages.plain(tmp_path / "r"))
    assert [part.key for part in found.parts] == ["replay-file-0", "load-file-1"]
    assert len(found.labels) == 3
    assert not found.only_parts
    assert [each["label"] for each in found.data["reports"]] == [str(replay), str(load)]


@pytest.mark.parametrize("name", INPUTS)
def test_a_tests_outputs_open_the_page_before_its_own_metric(tmp_path: Path, name: str) -> None:
    path = with_outputs(tmp_path / "r", lay_out(name, tmp_path).read_text())
    found = content(path)
    (part,) = found.parts
    assert part.key.endswith("-test-0")
    assert found.headline[0] == part.answer[0]
    assert found.headline[0].startswith("A: ")
    assert found.shown, "the tests stay"


def test_hostile_texts_of_an_output_stay_texts(tmp_path: Path) -> None:
    path = lay_out("replays/changed.json", tmp_path)
    text = path.read_text().replace("etude_tmp1", pages.SCRIPT.replace('"', "'"))
    path.write_text(text)
    page = to_html(content(path))
    assert pages.SCRIPT not in page
    assert "&lt;script&gt;" in page


def test_the_set_up_of_each_test_is_in_the_page(tmp_path: Path) -> None:
    places = {
        "A": {"file_system": {"type": "xfs", "mount_point": "/mnt", "device": "/dev/sdb1"}},
        "B": {"cache": "cold"},
    }
    machine = pages.MACHINE | {"disks": {"sdb": {"model": "Fast 9", "size_bytes": 1 << 40}}}
    text = {"a.ap": ["TEST A 3", "  SETUP mount /mnt", "  EXEC true", "DONE"]}
    plan = {"kind": "script", "primary": "elapsed", "text": text}
    path = pages.results(
        tmp_path / "r",
        {"A": [0.1, 0.2, 0.3], "B": [0.1, 0.2, 0.3]},
        entries=places,
        machine=machine,
        plan=plan,
    )
    found = content(path)
    first, second = (list(map(cell_text, row)) for row in found.setups.rows)
    assert first == ["A", "xfs at /mnt", "/dev/sdb1 (Fast 9, 1.000 TiB)", "SETUP mount /mnt", "–", "1"]
    assert second == ["B", "ext4", "/dev/sda1", "–", "cold", "1"]
    where = " ".join(next(answer.sentences for answer in found.answers if answer.key == "where"))
    assert [fact for fact in ("xfs", "/mnt", "Fast 9", "1 worker", "ext4", "cold") if fact not in where] == []


def test_workers_and_hooks_of_a_bench_are_its_set_up() -> None:
    tests = [{"name": "A", "role": "test", "workers": 4}, {"name": "A again", "role": "again"}]
    planned = [{"name": "A", "prepare": ["sync"], "cleanup": "rm -r x", "cool": "drop"}]
    (setup,) = setups_of({"tests": tests, "plan": {"tests": planned}}).values()
    assert (setup.workers, setup.cache) == (4, "drop")
    assert [each.partition(": ")[0] for each in setup.hooks.split("; ")] == ["prepare", "cleanup"]
    assert setups_of({"tests": tests, "plan": {"kind": "peak"}}) == {}


def test_old_results_without_a_record_of_the_place_are_read(tmp_path: Path) -> None:
    path = pages.results(tmp_path / "r", {"A": [0.1, 0.2, 0.3]}, machine={})
    ((test, *_),) = content(path).setups.rows
    assert test == "A"


def replay(tmp_path: Path) -> ReplayReport:
    found = read_report(lay_out("replays/faithful.json", tmp_path))
    assert isinstance(found, ReplayReport)
    return found


def test_the_figure_of_times_has_a_pair_of_bars_for_each(tmp_path: Path) -> None:
    report = replay(tmp_path)
    pairs = list(time_pairs([report, replace(report, run_s=2 * report.run_s)]))
    figure = recorded_and_replayed(pairs)
    recorded, replayed = (layer for layer in figure.panels[0].layers if isinstance(layer, Bars))
    assert len(recorded.boxes) == len(replayed.boxes) == len(pairs)
    assert replayed.boxes[0].high == pytest.approx(2 * (replayed.boxes[0].low or 0.0))
    unknown = replace(report.original, timed=False, run_s=None)
    figure = recorded_and_replayed(list(time_pairs([replace(report, original=unknown)])))
    assert len(figure.notes) == 1


def test_the_figure_of_lateness_has_three_points_a_trial(tmp_path: Path) -> None:
    late = replay(tmp_path).lateness_s
    assert late is not None
    for trials in ((1,), (1, 2, 5)):
        figure = lateness(dict.fromkeys(trials, late))
        points = [p for c in figure.panels[0].layers if isinstance(c, Curve) for p in c.points]
        assert len(points) == 3 * len(trials)
        assert max(p.y for p in points) == pytest.approx(late.max * 1e6)


def test_the_figures_of_a_load_have_its_windows_and_its_tail(tmp_path: Path) -> None:
    run = read_report(lay_out("load/directory.jsonl", tmp_path))
    assert isinstance(run, LoadReport)
    figure = over_time(window_figures(run), 200.0)
    rates, times = figure.panels
    assert [len(c.points) for panel in (rates, times) for c in panel.layers if isinstance(c, Curve)] == [
        4
    ] * 4
    responses = load_figures([run]).responses
    assert responses is not None
    (curve,) = (c for c in distributions([("", responses)]).panels[0].layers if isinstance(c, Curve))
    assert [p.y for p in curve.points] == sorted((p.y for p in curve.points), reverse=True)
    assert curve.points[0].y == 1.0
