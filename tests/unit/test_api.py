"""The Python face: what `import etude` offers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from html import unescape
from inspect import isfunction, signature
from pathlib import Path
from threading import Barrier
from xml.etree import ElementTree

import numpy as np
import pytest

import etude
from etude.api.call import in_python, public
from etude.errors import InputError, Interrupted, UsageError
from etude.experiment import run as running
from etude.experiment.session import new_directory
from etude.experiment.trial import group_name
from etude.figures.data import Line
from etude.present.section import Table
from etude.store.database import open_store
from support.builders import still_machine
from support.fakes import World, around
from support.made_histories import commit, fill, history


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)
    world = World({"a": around(0.01), "b": around(0.02)})
    monkeypatch.setattr(running, "engine_maker", lambda: world.make_engine)


def test_commands_are_compared_and_the_verdict_is_text(tmp_path: Path) -> None:
    verdict = etude.bench(["a x", "b y"], directory=tmp_path, seed=1)
    assert verdict.comparisons[0].ratio.ratio == pytest.approx(2.0, rel=0.02)
    assert "b y takes" in str(verdict)
    assert etude.load_results(tmp_path).frame().filter(kept=True).height >= 20


def test_a_notebook_shows_a_line_or_a_table_and_never_all_measurements(tmp_path: Path) -> None:
    verdict = etude.bench(["a '<x>'", "b y"], directory=tmp_path / "r", seed=1)
    results = etude.load_results(tmp_path / "r")
    for shown in (verdict, results):
        assert str(tmp_path / "r") in repr(shown)
        assert len(repr(shown)) < 250 + len(str(tmp_path))
        html = shown._repr_html_()
        assert html.count("<table>") == html.count("</table>") == 1
        assert html.count("<tr>") == 3
        assert "a '<x>'" not in html
        assert "&lt;x&gt;" in html
        ElementTree.fromstring(f"<div>{html}</div>")


def test_tests_are_run_as_a_plan(tmp_path: Path) -> None:
    test = etude.Test("name", ("a",), prepare="sync")
    verdict = etude.bench([test], directory=tmp_path, trials=3)
    assert [(t.test, t.kept) for t in verdict.tests] == [("name", 3)]


def test_what_cannot_be_meant_is_an_error_of_usage_before_anything_is_written(tmp_path: Path) -> None:
    for commands, options in (([], {}), (["a"], {"trials": 0}), (["a", "a"], {})):
        with pytest.raises(UsageError):
            etude.bench(commands, directory=tmp_path / "r", **options)
    assert list(tmp_path.iterdir()) == []


def test_all_that_is_public_can_be_loaded_and_nothing_else() -> None:
    assert all(getattr(etude, name) is not None for name in etude.__all__)
    assert set(etude.__all__) <= set(dir(etude))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = etude.nosuch  # type: ignore[attr-defined]


def test_a_function_hides_the_package_of_its_name() -> None:
    import etude.history.comparison
    import etude.peak.search
    import etude.stats.describe
    import etude.surface.spec

    for name in ("history", "peak", "stats", "surface"):
        assert isfunction(getattr(etude, name))
    from etude.peak import search

    assert search.MOST_TRIALS > 0


def test_a_search_is_data_a_table_and_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    found = etude.peak(simulate="mm1:500", seed=1, within=0.2, directory=tmp_path / "p")
    assert found.kept
    assert found.rate is not None
    assert found.low < found.rate < found.high
    frame = found.to_frame()
    assert frame.height == len(found.search.trials)
    assert str(frame.schema["limited"]) == "String"
    assert str(frame.schema["p99_s"]) == "Float64"
    trials = found.search.trials
    assert frame["ran_s"].to_list() == [trial.ran_s for trial in trials]
    assert frame["response_s"].to_list()[0] == pytest.approx(frame["reading"].to_list()[0] * 0.04)
    assert repr(found).endswith(", simulated>")
    assert etude.PeakRate.read(tmp_path / "p").rate == found.rate
    assert etude.peak(simulate="mm1:500", seed=1, within=0.2, directory=tmp_path / "p").rate == found.rate
    assert found.plot()._repr_png_().startswith(b"\x89PNG")
    ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    assert str(found).startswith("Simulated.")
    assert unescape(found._repr_html_()).count(str(found).splitlines()[1]) == 1


def test_a_map_is_data_a_table_and_figures(tmp_path: Path) -> None:
    found = etude.surface(simulate="DB_TP", count=3, directory=tmp_path / "s")
    frame = found.to_frame()
    assert frame.height == found.result.space.size
    assert frame.filter(state="measured").height == 3
    assert frame["kept"].null_count() == frame.height - 3
    assert str(frame.schema["why"]) == "String"
    assert {"3 measured", "simulated"} <= set(repr(found).strip("<>").partition(": ")[2].split(", "))
    assert found.best is not None
    assert set(found.best) <= set(frame.columns)
    assert set(found.figures()) == {"surface", "map", "effects"} & set(found.figures())
    assert etude.SurfaceMap.read(tmp_path / "s").best == found.best
    assert str(found).startswith("Simulated")
    assert "Simulated" in found._repr_html_()
    ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")


@pytest.mark.parametrize(
    "call",
    [
        etude.peak,
        etude.surface,
        partial(etude.peak, "h.toml", simulate="mm1"),
        partial(etude.peak, simulate="nosuch"),
        partial(etude.peak, simulate="mm1", policy="nosuch"),
        partial(etude.surface, simulate="DB_TP", plan="full", error=0.1),
        partial(etude.record, [], "t"),
        partial(etude.peak, simulate="mm1", within=20),
        partial(etude.peak, simulate="mm1", budget_s=float("nan")),
        partial(etude.peak, simulate="mm1", seed=2**70),
        partial(etude.surface, simulate="DB_TP", count=0),
        partial(etude.surface, simulate="DB_TP", plan="zz"),
        partial(etude.bench, "a x"),
        partial(etude.bench, [5]),
        partial(etude.bench, ["a"], trials=2.5),
        partial(etude.bench, ["a"], seed=2**64),
        partial(etude.bench, ["a"], budget_s=float("inf")),
        partial(etude.bench, ["a"], counters="x"),
        partial(etude.stats, "nosuch", confidence=95),
        partial(etude.plot, "nosuch", "nope"),
        partial(etude.plot, "nosuch", foo=1),
        partial(etude.plot, "nosuch", size=(-1, 2)),
        partial(etude.bench, ["a"], precision="5%"),
        partial(etude.bench, ["a"], budget_s="5 s"),
        partial(etude.peak, simulate=5),
        partial(etude.peak, simulate="mm1", seed=-1),
        partial(etude.peak, simulate="mm1", factors={"cpu": "1"}),
        partial(etude.peak, simulate="mm1", budget_s="inf"),
        partial(etude.surface, simulate="DB_TP", plan="adaptive", error=5),
        partial(etude.surface, simulate="DB_TP", budget_s="x"),
        partial(etude.record, "echo 'x", "t"),
        partial(etude.record, [1], "t"),
        partial(etude.replay, "c", timing="x"),
        partial(etude.run, etude.make_plan(["a"]), seed=1),
        partial(etude.plot, "nosuch", bars="x"),
        partial(etude.plot, "nosuch", confidence=float("nan")),
        partial(etude.plot, "nosuch", confidence=2),
        partial(etude.plot, "nosuch", confidence=None),
        partial(etude.plot, "nosuch", confidence=1),
        partial(etude.plot, "nosuch", metrics=5),
        partial(etude.plot, "nosuch", metrics=[5]),
        partial(etude.plot, "nosuch", thresholds=5),
        partial(etude.plot, "nosuch", thresholds="5ms"),
        partial(etude.plot, "nosuch", thresholds=[5]),
        partial(etude.plot, "nosuch", marks=["x"]),
        partial(etude.plot, "nosuch", log=5),
        partial(etude.plot, "nosuch", log="z"),
        partial(etude.plot, "nosuch", first=[float("nan")]),
        partial(etude.plot, "nosuch", first=5),
        partial(etude.plot, "nosuch", first=[-1]),
        partial(etude.plot, "nosuch", key="nowhere"),
        partial(etude.plot, "nosuch", key=5),
        partial(etude.plot, "nosuch", bar_width="x"),
        partial(etude.plot, "nosuch", rotate=float("inf")),
        partial(etude.plot, "nosuch", title=5),
        partial(etude.plot, "nosuch", size=(1,)),
        partial(etude.plot, "nosuch", size=5),
        partial(etude.plot, "nosuch", size=(999, 999)),
        partial(etude.plot, "nosuch", size=(1e-9, 1)),
        partial(etude.plot, "nosuch", font="a"),
        partial(etude.plot, "nosuch", font=100),
        partial(etude.stats, None),
        partial(etude.stats, 5),
        partial(etude.stats, b"x"),
        partial(etude.stats, []),
        partial(etude.stats, "\0"),
        partial(etude.load_results, None),
        partial(etude.load_results, 5),
        partial(etude.load_results, b"x"),
        partial(etude.load_results, []),
        partial(etude.load_results, "\0"),
        partial(etude.replay, None),
        partial(etude.replay, 5),
        partial(etude.replay, b"x"),
        partial(etude.replay, []),
        partial(etude.replay, "\0"),
        partial(etude.plot, None),
        partial(etude.plot, 5),
        partial(etude.plot, b"x"),
        partial(etude.plot, []),
        partial(etude.plot, "\0"),
        partial(etude.record, "true", None),
        partial(etude.record, "true", 5),
        partial(etude.record, "true", b"x"),
        partial(etude.record, "true", "\0"),
        partial(etude.capture, "true", None),
        partial(etude.capture, "true", 5),
        partial(etude.capture, "true", b"x"),
        partial(etude.capture, "true", "\0"),
        partial(etude.history, "a", store=5),
        partial(etude.compare, "a", "b", store=5),
        partial(etude.history, "a", store=b"x"),
        partial(etude.compare, "a", "b", store=b"x"),
        partial(etude.history, "a", store=[]),
        partial(etude.compare, "a", "b", store=[]),
        partial(etude.record, ["a\0"], "t"),
        partial(etude.bench, None),
        partial(etude.bench, 5),
        partial(etude.bench, {"a": 1}),
        partial(etude.bench, b"ab"),
        partial(etude.bench, (each for each in ["a x"])),
    ],
)
def test_what_does_not_fit_is_an_error_of_usage_and_leaves_nothing(
    call: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        call()
    function = call.func if isinstance(call, partial) else call
    assert str(caught.value).partition(": ")[0] == f"etude.{function.__name__.removeprefix('etude.')}"
    assert list(tmp_path.iterdir()) == []


def test_a_figure_takes_lists_and_texts_and_is_saved_at_a_path(tmp_path: Path) -> None:
    etude.bench(["a x", "b y"], directory=tmp_path, seed=1)
    drawn = etude.plot(
        tmp_path, metrics=["elapsed"], thresholds=["5ms=limit"], key="right top", size=(4, None)
    )
    assert [each.label for panel in drawn.data.panels for each in panel.layers if isinstance(each, Line)] == [
        "limit"
    ]
    for path in (None, 5, b"x.pdf", "\0.pdf"):
        with pytest.raises(UsageError):
            drawn.save(path)  # type: ignore[arg-type]


def test_names_that_are_too_long_for_a_file_are_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        etude.compare("a" * 10_000, "b" * 10_000, store=tmp_path / "s")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("--precision 5: x", "precision=5: x"),
        ("--time 5: x", "budget_s=5: x"),
        ("x -o r-2, y", "x directory=r-2, y"),
        ("x with -o", "x with directory="),
        ("use --ignore-failure", "use ignore_failure"),
        ("give --resume r", "give --resume r"),
        ("--max-trials 3: below --min-trials 5", "max_trials=3: below min_trials=5"),
        ("a --time-out and x--time", "a --time-out and x--time"),
    ],
)
def test_messages_name_keywords_in_place_of_options(text: str, found: str) -> None:
    assert in_python(text, tuple(signature(etude.bench).parameters)) == found


def test_ctrl_c_is_a_keyboard_interrupt_and_no_error_that_a_loop_passes_over() -> None:
    @public
    def ended() -> None:
        raise Interrupted(signal.SIGINT, "ended")

    with pytest.raises(KeyboardInterrupt):
        ended()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    trials, share = np.int64(3), np.float64(0.2)
    assert etude.bench(["a x"], trials=trials, directory=tmp_path / "b").tests[0].kept == 3  # type: ignore[arg-type]
    assert (
        etude.peak(simulate="mm1", within=share, seed=1, directory=tmp_path / "p").search.task.within == 0.2
    )


def test_an_output_that_is_there_already_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "t").touch()
    for function in (etude.record, etude.capture):
        with pytest.raises(UsageError, match="is there already"):
            function("true", tmp_path / "t")


def test_results_on_disk_have_a_verdict_and_frames(tmp_path: Path) -> None:
    etude.bench(["a x", "b y"], directory=tmp_path, seed=1)
    verdict = etude.stats(tmp_path)
    (row,) = verdict.ratios_frame().rows(named=True)
    assert row["base"] == "a x"
    assert row["low"] < row["ratio"] < row["high"]
    alone = replace(verdict, comparisons=(), tests=())
    assert alone.ratios_frame().schema == verdict.ratios_frame().schema
    frame = verdict.to_frame()
    assert set(alone.to_frame().schema.items()) <= set(frame.schema.items())
    stopped = replace(
        verdict,
        tests=[replace(t, metrics=[replace(m, summary=None) for m in t.metrics]) for t in verdict.tests],
    )
    assert set(stopped.to_frame().schema.items()) == set(frame.schema.items())
    assert set(frame["test"]) == {"a x", "b y"}
    assert {"metric", "unit", "count", "mean", "low", "high"} <= set(frame.columns)
    assert verdict.results.names() == ("a x", "b y")
    assert verdict.plot()._repr_png_().startswith(b"\x89PNG")
    results = etude.load_results(tmp_path)
    assert results.to_frame().equals(results.frame())
    lost = results.measurements["a x"][0]._replace(metrics={"elapsed": (None, "lost")})
    assert str(replace(results, measurements={"a x": (lost,)}).to_frame().schema["elapsed"]) == "Float64"
    for source in (tmp_path, results, verdict):
        assert etude.stats(source).comparisons[0].ratio == verdict.comparisons[0].ratio
        assert etude.plot(source, "ecdf").data.panels == results.plot("ecdf").data.panels
        assert len(repr(etude.plot(source))) < 100
    for shown in (verdict, results):
        with pytest.raises(UsageError):
            shown.plot("nosuch")


def test_a_replay_shows_both_runs_and_is_judged_where_it_has_a_schedule(tmp_path: Path) -> None:
    captured = etude.capture(["cat", __file__], tmp_path / "c")
    played, hurried = etude.replay(captured), etude.replay(captured, timing="none")
    assert played.faithful in (True, False)
    assert hurried.faithful is None
    times, *_ = [block for block in played.section().blocks if isinstance(block, Table)]
    assert times.columns[2].cells[0].value == played.run_s
    assert played._repr_html_().count("<table") >= 1
    assert played.plot()._repr_png_().startswith(b"\x89PNG")


def test_results_have_directories_of_their_own_however_fast_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for _ in range(5):
        found.append(new_directory(None, "a"))
        (found[-1] / "experiment.json").touch()
    assert len(set(found)) == 5


def test_experiments_in_threads_have_control_groups_of_their_own() -> None:
    with ThreadPoolExecutor(2) as threads:
        barrier = Barrier(2)

        def name(_: int) -> str:
            barrier.wait()
            return group_name("a test")

        names = {*threads.map(name, range(2)), group_name("a test")}
    assert len(names) == 3
    assert all(name.startswith(f"etude-{os.getpid()}-a-test-") for name in names)


def test_metrics_of_a_verdict_are_checked(tmp_path: Path) -> None:
    etude.bench(["a x", "b y"], directory=tmp_path, seed=1)
    assert {m.metric for m in etude.stats(tmp_path, metrics="user").tests[0].metrics} == {"user"}
    with pytest.raises(UsageError):
        etude.stats(tmp_path, metrics=["user", "nope"])


def test_a_store_is_compared_and_has_a_history(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.sqlite") as store:
        fill(store, history(40, {20: 1.2}))
    found = etude.compare(commit(5), commit(30), store=tmp_path / "s.sqlite")
    assert len(found) == found.to_frame().height > 0
    course = etude.history(found[0].test, store=tmp_path / "s.sqlite")
    assert course.to_frame().filter(step=True)["commit"].to_list() == [commit(20)]
    assert course.plot()._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(InputError):
        etude.history("nosuch", store=tmp_path / "s.sqlite")
