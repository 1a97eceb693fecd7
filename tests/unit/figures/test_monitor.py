"""The figure of a session: trials above, the machine's series below, on one time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from etude.analysis.interference import load_monitors
from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.errors import InputError
from etude.figures.data import Band, Bars, Curve, Figure, Panel, Shape
from etude.figures.monitor import MOST_POINTS, monitor_figure
from etude.figures.save import export
from support.golden import Golden
from support.monitored import busy_second, second, trials_of_seconds

LENGTHS = [1] * 6 + [3] + [1] * 9


def drawn(directory: Path, close: tuple[str, int] | None = None) -> Figure:
    subject = read_subject(str(directory))
    assert isinstance(subject, Subject)
    (monitor,) = load_monitors(subject.directory, subject.experiment).values()
    return monitor_figure(subject, monitor, 1, verdict(subject).every, close=close)


def panel(figure: Figure, words: str) -> Panel:
    (found,) = [each for each in figure.panels if each.y.label.startswith(words)]
    return found


def labels(figure: Figure) -> list[str]:
    return [each.y.label.partition(" ")[0] for each in figure.panels]


def readings(**hit: float) -> list[dict[str, Any]]:
    return [busy_second(n, 0.97, **(hit if 7 <= n <= 9 else {})) for n in range(1, 19)]


def test_trials_stand_where_and_as_long_as_they_ran(tmp_path: Path) -> None:
    figure = drawn(trials_of_seconds(tmp_path / "r", LENGTHS, readings()))
    (bars,) = [layer for layer in figure.panels[0].layers if isinstance(layer, Bars)]
    assert bars.name == "a"
    assert [(box.x, box.width, box.top) for box in bars.boxes[5:8]] == [
        pytest.approx((5.5005, 1.001, 1.001), abs=0.01),
        pytest.approx((7.5, 3.0, 3.0), abs=0.01),
        pytest.approx((9.5, 1.0, 1.0), abs=0.01),
    ]


def test_the_seconds_of_an_outlier_are_shaded_in_all_panels(tmp_path: Path) -> None:
    figure = drawn(trials_of_seconds(tmp_path / "r", LENGTHS, readings(foreign=0.9, pressure_cpu_some=0.5)))
    for each in figure.panels:
        (band,) = [layer for layer in each.layers if isinstance(layer, Band)]
        assert (band.low, band.high) == pytest.approx((6.0, 9.0), abs=0.01)
    (mark,) = [layer for layer in figure.panels[0].layers if isinstance(layer, Curve)]
    assert (mark.name, len(mark.points)) == ("outlier", 1)


def test_what_others_used_is_drawn_upon_the_cpus(tmp_path: Path) -> None:
    figure = drawn(trials_of_seconds(tmp_path / "r", LENGTHS, readings(foreign=0.9)))
    cpus = panel(figure, "CPUs")
    (user,) = [layer for layer in cpus.layers if isinstance(layer, Shape)]
    assert max(y for _, y in user.outline) == pytest.approx(1.88)
    (others,) = [layer for layer in cpus.layers if isinstance(layer, Curve)]
    # Of trial 7 the program used one second in three: the rest of what its name had is not its own by the clock.
    assert [round(point.y, 2) for point in others.points[5:10]] == [0.0, 1.55, 1.55, 1.55, 0.0]


def test_only_what_happened_has_a_panel(tmp_path: Path) -> None:
    quiet = drawn(trials_of_seconds(tmp_path / "quiet", LENGTHS, readings()))
    assert labels(quiet) == ["elapsed", "CPUs"]
    happened = {
        "pressure_io_some": 0.5,
        "disk_sda_written": 2.0**22,
        "net_eth0_sent": 2.0**20,
        "memory_available": 1e9,
        "frequency_0": 1e9,
    }
    full = [*readings(**happened), {"ns": 10**9, "level": 3, "kernel": "a word"}]
    found = drawn(trials_of_seconds(tmp_path / "full", LENGTHS, full))
    assert labels(found) == ["elapsed", "CPUs", "pressure", "disk", "memory", "network", "clock", "kernel"]


def test_around_one_trial_the_axis_is_closer(tmp_path: Path) -> None:
    lengths = [1] * 40 + [2] + [1] * 40
    directory = trials_of_seconds(tmp_path / "r", lengths, [busy_second(n, 0.97) for n in range(1, 83)])
    figure = drawn(directory, ("a", 41))
    assert figure.x.low == pytest.approx(34, abs=1)
    assert figure.x.high == pytest.approx(48, abs=1)


def test_of_many_readings_neighbours_are_joined_and_no_peak_is_lost(tmp_path: Path, golden: Golden) -> None:
    count = 3 * MOST_POINTS + 7
    made = [
        second(n, cpu_user=0.97, pressure_cpu_some=0.9 if n == 1000 else 0.0) for n in range(1, count + 1)
    ]
    figure = drawn(trials_of_seconds(tmp_path / "r", [1] * count, made))
    (curve,) = [layer for layer in panel(figure, "pressure").layers if isinstance(layer, Curve)]
    assert len(curve.points) <= MOST_POINTS + 1
    assert max(point.y for point in curve.points) == pytest.approx(90.0)
    assert [note for note in figure.notes if note.startswith("4 readings ")]
    assert figure.x.label.endswith(" (min)")
    golden("\n".join([figure.x.label, *figure.notes]))


def test_without_a_reading_there_is_nothing_to_draw(tmp_path: Path) -> None:
    directory = trials_of_seconds(tmp_path / "r", LENGTHS, readings())
    with pytest.raises(InputError, match="trial 99 of a "):
        drawn(directory, ("a", 99))


def test_its_data_and_scripts_are_written_too(tmp_path: Path) -> None:
    figure = drawn(trials_of_seconds(tmp_path / "r", LENGTHS, readings(foreign=0.9)))
    written = export(figure, str(tmp_path / "data"), "monitor")
    assert sorted(Path(path).suffix for path in written) == [".dat", ".gnuplot", ".py"]
    script = (tmp_path / "data" / "monitor.gnuplot").read_text()
    assert re.search(r"^set key .*\boutside\b", script, re.MULTILINE)
