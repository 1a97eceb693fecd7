"""What figures show are the numbers that tables show."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.errors import InputError, UsageError
from etude.figures.bars import bars
from etude.figures.data import Bars, Curve, Figure, Line, Mark, Point
from etude.figures.plot import make, usual_kind
from etude.figures.plot_options import PlotOptions, threshold
from etude.figures.ratio import crossings
from etude.figures.sources import read_samples, summary_point
from etude.results.series import Floats
from etude.stats.crossings import crossing
from etude.stats.intervals import t_quantile
from etude.stats.twosample import student
from etude.units.parsing import quantity
from support.builders import measurement, results_directory
from support.golden import Golden
from support.places import DATA

EXT4 = str(DATA / "postmark" / "ext4:1.res")


def curves(figure: Figure, panel: int = 0) -> list[Curve]:
    return [layer for layer in figure.panels[panel].layers if isinstance(layer, Curve)]


def drawn(kind: str, *files: str, **wishes: object) -> Figure:
    wish = PlotOptions(**wishes)  # type: ignore[arg-type]
    return make(kind, read_samples([str(DATA / f) for f in files], wish), wish)


def test_a_bar_is_the_mean_with_the_interval_of_etude_stats() -> None:
    subject = read_subject(EXT4)
    assert isinstance(subject, Subject)
    summary = verdict(subject).tests[0].metric("elapsed")
    assert summary is not None
    assert summary.summary is not None
    (layer,) = drawn("bars", "postmark/ext4:1.res", plain_units=True).panels[0].layers
    assert isinstance(layer, Bars)
    (box,) = layer.boxes
    interval = summary.summary.mean_interval
    assert interval is not None
    assert (box.top, box.low, box.high) == (summary.summary.mean, interval.low, interval.high)


@pytest.mark.parametrize("kind", ["quartiles", "min-max", "deviation", "none"])
def test_error_bars_are_what_was_asked_for(kind: str) -> None:
    wish = PlotOptions(bars=kind)  # type: ignore[arg-type]
    (sample,) = read_samples([EXT4], wish)
    values = sample.values("elapsed")
    point = summary_point(sample, "elapsed", wish)
    ends = {
        "quartiles": (np.median(values), *np.percentile(values, [25, 75])),
        "min-max": (np.median(values), values.min(), values.max()),
        "deviation": (values.mean(), values.mean() - values.std(ddof=1), values.mean() + values.std(ddof=1)),
        "none": (values.mean(), None, None),
    }[kind]
    assert point is not None
    assert (point.y, point.low, point.high) == (
        pytest.approx(ends[0]),
        *(None if e is None else pytest.approx(e) for e in ends[1:]),
    )


def test_user_time_stands_on_system_time() -> None:
    figure = drawn("bars", "postmark/ext4:1.res", metrics=("elapsed", "user", "system"))
    elapsed, system, user = (layer for layer in figure.panels[0].layers if isinstance(layer, Bars))
    assert user.boxes[0].bottom == system.boxes[0].top
    assert user.boxes[0].x == system.boxes[0].x != elapsed.boxes[0].x
    beside = drawn(
        "bars", "postmark/ext4:1.res", metrics=("elapsed", "user", "system"), stack=False, bar_gap=0.5
    )
    places = [layer.boxes[0].x for layer in beside.panels[0].layers if isinstance(layer, Bars)]
    assert places == [0.0, 1.5, 3.0]


def test_ratios_are_of_medians_and_crossings_are_marked() -> None:
    figure = drawn("ratio", "linking.csv", log="xy")
    top, low = curves(figure), curves(figure, 1)
    assert [p.y for p in low[0].points] == [
        pytest.approx(b.y / a.y) for a, b in zip(top[0].points, top[1].points, strict=True)
    ]
    marks = [layer for layer in figure.panels[1].layers if isinstance(layer, Mark)]
    assert sorted(mark.y for mark in marks) == [1.01, 1.05]
    assert {layer.at for layer in figure.panels[1].layers if isinstance(layer, Line)} == {1.0, 1.01, 1.05}


def linking(metric: str = "elapsed") -> tuple[list[float], list[Floats], list[Floats]]:
    """Sizes in bytes, with the trials of static and of dynamic at each."""
    found = {
        binary: sorted(
            (quantity(s.parameters["size"])[0], s.values(metric))  # type: ignore[index]
            for s in read_samples([str(DATA / "linking.csv")], PlotOptions())
            if s.parameters["binary"] == binary
        )
        for binary in ("static", "dynamic")
    }
    return [x for x, _ in found["static"]], *(
        [values for _, values in found[b]] for b in ("static", "dynamic")
    )  # type: ignore[return-value]


def test_a_crossing_has_the_interval_of_trials_drawn_anew() -> None:
    figure = drawn("ratio", "linking.csv", log="xy", confidence=0.9)
    marks = {mark.y: mark for mark in figure.panels[1].layers if isinstance(mark, Mark)}
    for level, mark in marks.items():
        expected = crossing(*linking(), level, confidence=0.9)
        assert expected.interval is not None
        assert (mark.low, mark.high) == (expected.interval.low, expected.interval.high)
        assert mark.x == pytest.approx(expected.at)
    assert any(
        re.fullmatch(r"dynamic .*\+5 % .*\b6\.33 MiB \([56](\.\d+)?–[67](\.\d+)? MiB, 90 %\)", n)
        for n in figure.notes
    )


def test_ratios_of_means_have_no_interval_of_medians() -> None:
    figure = drawn("ratio", "linking.csv", log="xy", bars="interval")
    marks = [mark for mark in figure.panels[1].layers if isinstance(mark, Mark)]
    assert marks
    assert all(mark.low is None for mark in marks)


def note_on(figure: Figure, words: str) -> str:
    """The single note that begins so."""
    (found,) = [note for note in figure.notes if note.startswith(words)]
    return found


def test_a_level_that_is_not_crossed_is_named_with_the_reason(tmp_path: Path, golden: Golden) -> None:
    rows = [
        f"{n}KiB,{binary},{times * elapsed}\n"
        for n in (1, 2)
        for binary, times in (("old", 1.0), ("new", 1.2))
        for elapsed in (1.0, 1.1, 1.2, 1.3)
    ]
    path = table(tmp_path, "size,binary,elapsed\n" + "".join(rows))
    figure = drawn("ratio", path, log="x", parameter="size")
    (note,) = [note for note in figure.notes if "+5 %" in note]
    assert note.startswith("new ")
    golden(note)
    assert not [mark for mark in figure.panels[1].layers if isinstance(mark, Mark)]


def test_a_mark_beyond_the_points_is_named_and_not_drawn(golden: Golden) -> None:
    marks = tuple(map(threshold, ("4KiB=page", "32MiB=L3", "4B=tiny")))
    for kind, file in (("lines", "buffers.csv"), ("ratio", "buffers.csv")):
        figure = drawn(kind, file, log="x", marks=marks)
        upright = [line for line in figure.panels[0].layers if isinstance(line, Line) and line.axis == "x"]
        assert [line.label for line in upright] == ["page"]
        assert "32 MiB" in note_on(figure, "L3, ")
        assert "4 B" in note_on(figure, "tiny, ")
    golden(note_on(figure, "L3, "))


def test_first_trials_that_are_not_there_are_no_line(tmp_path: Path) -> None:
    figure = drawn("pvalues", "linking.csv", log="xy", first=(6, 500))
    assert [curve.name for curve in curves(figure, 1)] == ["all trials", "first 6 trials"]
    assert [note for note in figure.notes if re.search("500 trials .*dynamic.*static", note)]


def test_a_crossing_lies_on_the_line_that_is_drawn() -> None:
    points = [Point(1, 1.2), Point(100, 1.0)]
    assert list(crossings(points, 1.1, log=False)) == [pytest.approx(50.5)]
    assert list(crossings(points, 1.1, log=True)) == [pytest.approx(10.0)]
    assert list(crossings(points, 1.0, log=True)) == [100]
    assert list(crossings(points, 1.3, log=True)) == []


def test_p_values_are_those_of_the_t_test_on_all_and_on_the_first_trials() -> None:
    figure = drawn("pvalues", "linking.csv", log="xy", first=(6,))
    wish = PlotOptions()
    last = {
        s.parameters["binary"]: s
        for s in read_samples([str(DATA / "linking.csv")], wish)
        if s.parameters["size"] == "128MiB"
    }
    a, b = (last[name].values("elapsed") for name in ("dynamic", "static"))
    everything, first = curves(figure, 1)
    assert everything.points[-1].y == pytest.approx(student(a, b).p)
    assert first.points[-1].y == pytest.approx(student(a[:6], b[:6]).p)


def test_an_ecdf_ends_at_one_and_a_histogram_adds_up_to_one() -> None:
    assert curves(drawn("ecdf", "postmark/ext4:1.res"))[0].points[-1].y == 1.0
    (layer,) = drawn("histogram", "postmark/ext4:1.res").panels[0].layers
    assert isinstance(layer, Bars)
    assert sum(box.top for box in layer.boxes) == pytest.approx(1.0)


def test_the_kind_follows_from_the_tests() -> None:
    wish = PlotOptions()
    threads = [str(DATA / "postmark" / f"ext4:{n}.res") for n in (1, 2, 4)]
    assert usual_kind(read_samples(threads, wish), wish) == "lines"
    assert usual_kind(read_samples([str(DATA / "cooling.csv")], wish), wish) == "bars"


def table(directory: Path, text: str) -> str:
    path = directory / "t.csv"
    path.write_text(text)
    return str(path)


def test_missing_values_are_left_out_and_said(tmp_path: Path, golden: Golden) -> None:
    path = table(tmp_path, "test,elapsed\na,1.19\na,nan\na,1.2\nb,nan\nb,nan\nc,3\n")
    figure = drawn("bars", path)
    (layer,) = figure.panels[0].layers
    assert isinstance(layer, Bars)
    assert len(layer.boxes) == 2
    golden("\n".join([note_on(figure, "b: "), note_on(figure, "1 of 2 values ")]))


def test_nothing_but_missing_values_is_nothing_to_plot(tmp_path: Path) -> None:
    path = table(tmp_path, "test,elapsed,user\na,nan,1\nb,nan,1\n")
    wish = PlotOptions(metrics=("elapsed",))
    samples = read_samples([path], wish)
    for kind in ("bars", "ecdf", "timeline"):
        with pytest.raises((InputError, UsageError), match=r"'elapsed'|nothing to plot"):
            make(kind, samples, wish)


def test_zero_is_not_on_a_logarithmic_axis_and_that_is_said(tmp_path: Path) -> None:
    path = table(tmp_path, "test,elapsed\na1,0\na2,1\na2,1.1\na4,2\na4,2.1\n")
    figure = drawn("lines", path, log="y")
    assert [p.x for p in curves(figure)[0].points] == [2, 4]
    assert [note for note in figure.notes if re.search(r"\b1 values\b", note)]


def test_one_point_is_drawn_without_an_error_bar(tmp_path: Path) -> None:
    path = table(tmp_path, "test,elapsed\na1,1\n")
    for kind in ("bars", "lines", "ecdf", "box", "violin", "histogram", "percentiles", "timeline"):
        assert drawn(kind, path).panels[0].layers


def test_too_many_series_are_refused_and_too_many_points_thinned(tmp_path: Path) -> None:
    path = table(
        tmp_path, "test,elapsed\n" + "".join(f"{'x' * n}-,{n}\n{'x' * n}-,{n}\n" for n in range(1, 100))
    )
    for kind in ("ecdf", "box", "timeline", "bars"):
        with pytest.raises(UsageError, match="99"):
            drawn(kind, path)
    path = table(tmp_path, "elapsed\n" + "".join(f"{n % 97}.5\n" for n in range(9000)))
    figure = drawn("ecdf", path)
    assert len(curves(figure)[0].points) == 2000
    assert curves(figure)[0].points[-1].y == 1.0
    assert [note for note in figure.notes if "2000 of 9001 points" in note]


def test_metrics_of_two_units_are_not_put_on_one_axis(tmp_path: Path) -> None:
    path = table(tmp_path, "test,elapsed,size (B)\na,1,2\na,1,2\n")
    with pytest.raises(UsageError, match="one axis"):
        bars(read_samples([path], PlotOptions()), PlotOptions(metrics=("elapsed", "size")))


def test_the_trials_that_a_warning_calls_another_level_are_marked() -> None:
    marked = {c.name: [p.x for p in c.points] for c in curves(drawn("timeline", "postmark/xfs:2.res"))}
    assert marked["level shift"] == [1, 2, 3]
    assert len(marked[""]) == 28


def test_plain_intervals_do_not_know_of_dependence(tmp_path: Path) -> None:
    values = np.repeat([1.0, 2.0, 1.5, 3.0], 5) + np.linspace(0, 0.1, 20)
    path = table(tmp_path, "test,elapsed\n" + "".join(f"a,{v}\n" for v in values))
    wish = PlotOptions(plain_intervals=True)
    (sample,) = read_samples([path], wish)
    plain, careful = (summary_point(sample, "elapsed", each) for each in (wish, PlotOptions()))
    assert plain is not None
    assert careful is not None
    half = t_quantile(0.95, 19) * values.std(ddof=1) / np.sqrt(20)
    assert plain.high == pytest.approx(values.mean() + half)
    assert careful.high is not None
    assert careful.high > values.mean() + 1.2 * half


@pytest.mark.parametrize("kind", ["lines", "ratio"])
def test_a_point_without_a_value_is_told_once(kind: str, tmp_path: Path) -> None:
    def made(lost: str) -> Figure:
        tests = {
            f"{name}={n}": [
                measurement(f"{name}={n}", trial=t, elapsed_s=n + t / 100, kept=f"{name}={n}" != lost)
                for t in range(3)
            ]
            for name in "ab"
            for n in (1, 2, 3)
        }
        place = results_directory(tmp_path / f"r{lost}", tests, plan={"kind": "script", "primary": "elapsed"})
        wish = PlotOptions()
        return make(kind, read_samples([str(place)], wish), wish)

    whole, less = made(""), made("a=2")
    assert sum(len(c.points) for c in curves(whole)) - sum(len(c.points) for c in curves(less)) == 1
    assert len(less.notes) == len(whole.notes) + 1
    assert sum(note.startswith("a=2:") for note in less.notes) == 1
