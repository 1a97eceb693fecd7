"""Results of different sessions: refused, or widened by what changes between sessions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from etude.analysis.cross_session import (
    CrossSession,
    by_session,
    compare_across,
    compare_with_first,
    overall,
    stored_beside,
)
from etude.analysis.subject import Subject, subject_of
from etude.errors import InputError
from etude.present.sentences.comparison import UNPAIRED
from etude.present.sentences.details import across_lines
from etude.results.model import Measurement
from etude.results.reader import load_results
from etude.stats.cross_session import CrossSessionRatio, NotSupported, stated_session_spread
from etude.stats.ratio import Ratio
from support.builders import measurement, results_directory
from support.golden import Golden

PLAN = {"kind": "script", "primary": "elapsed"}


def trials(
    test: str, level: float, *, sitting: int = 1, host: str = "here", first: int = 1
) -> list[Measurement]:
    noise = np.random.default_rng(int(level * 1e6) + sitting).normal(1.0, 0.005, 10)
    return [
        measurement(test, trial=n, elapsed_s=float(level * x), sitting=sitting, host=host)
        for n, x in enumerate(noise, first)
    ]


def subject(directory: Path, rows: dict[str, list[Measurement]]) -> Subject:
    return subject_of(load_results(results_directory(directory, rows, plan=PLAN)))


def compared(base: Subject, other: Subject, **options: object) -> CrossSession:
    (found,) = compare_across(base, other, "elapsed", **options)  # type: ignore[arg-type]
    return found


def line_of(found: CrossSession, directory: Path) -> str:
    """Its sentence, in which every directory has the same name."""
    (line,) = across_lines([found])
    return line.replace(str(directory), "DIR")


def test_all_tests_of_a_suite_have_one_ratio_together(tmp_path: Path) -> None:
    levels = {"old": (1.0, 1.0, 2.0), "new": (1.1, 1.21, 2.0)}
    old, new = (
        subject(tmp_path / side, {name: trials(name, level) for name, level in zip("abc", each, strict=True)})
        for side, each in levels.items()
    )
    found, _ = compare_with_first([old, new], "elapsed", between=0.03)
    ((label, together),) = overall(found)
    assert label == new.label
    assert (together.tests, together.ratio) == (3, pytest.approx(1.1, rel=0.01))
    each = [a.found for a in found if isinstance(a.found, CrossSessionRatio)]
    assert together.high / together.ratio == pytest.approx(
        float(np.exp(np.mean([np.log(one.among(1).high / one.ratio) for one in each]))), rel=1e-3
    )
    assert overall(found[:1]) == []


def test_several_comparisons_hold_together(tmp_path: Path) -> None:
    old, new = (
        subject(tmp_path / side, {name: trials(name, level) for name in "abc"})
        for side, level in (("old", 1.0), ("new", 1.1))
    )
    known = stated_session_spread(3.0)
    alone = [each.found for each in compare_across(old, new, "elapsed", known=known)]
    family, _ = compare_with_first([old, new], "elapsed", between=0.03)
    for one, each in zip(alone, family, strict=True):
        assert isinstance(one, CrossSessionRatio)
        assert isinstance(each.found, CrossSessionRatio)
        assert each.found.together == 3
        assert each.found.low < one.low < one.ratio == each.found.ratio
        assert each.adjusted_p == pytest.approx(3 * one.p)
        assert each.adjusted_p is not None
        assert (each.found.low > 1.0) == (each.adjusted_p < 0.05)
    (single,), _ = compare_with_first([old, only(new, "b")], "elapsed", between=0.03)
    assert (single.found, single.adjusted_p) == (alone[1], None)


def test_what_is_refused_is_none_of_the_comparisons_that_hold_together(tmp_path: Path) -> None:
    sessions = [trials("a", 1.0, sitting=number, first=10 * number - 9) for number in (1, 2, 3)]
    old = subject(tmp_path / "old", {"a": [m for rows in sessions for m in rows], "b": trials("b", 1.0)})
    new = subject(tmp_path / "new", {"a": trials("a", 1.1), "b": trials("b", 1.1)})
    (first, second), _ = compare_with_first([old, new], "elapsed")
    assert isinstance(first.found, CrossSessionRatio)
    assert isinstance(second.found, NotSupported)
    assert (first.found.together, first.adjusted_p) == (1, None)


def only(found: Subject, test: str) -> Subject:
    return replace(found, tests=tuple(series for series in found.tests if series.test == test))


def test_one_sitting_a_side_is_refused_with_what_is_needed(tmp_path: Path, golden: Golden) -> None:
    old, new = (subject(tmp_path / n, {"a": trials("a", level)}) for n, level in (("old", 1.0), ("new", 1.1)))
    found = compared(old, new)
    assert isinstance(found.found, NotSupported)
    assert (found.found.have, found.found.needed) == (1, 2)
    line = line_of(found, tmp_path)
    for part in ("(DIR/new)", "(DIR/old)", "2 more", "--between-sessions", found.found.remedy):
        assert part in line
    golden(line)


def test_a_stated_spread_widens_the_interval(tmp_path: Path, golden: Golden) -> None:
    old, new = (subject(tmp_path / n, {"a": trials("a", level)}) for n, level in (("old", 1.0), ("new", 1.1)))
    narrow, wide = (compared(old, new, known=stated_session_spread(p)).found for p in (0.5, 10.0))
    assert isinstance(narrow, CrossSessionRatio)
    assert isinstance(wide, CrossSessionRatio)
    assert narrow.low > 1.0
    assert wide.low < 1.0 < 1.1 < wide.high
    line = line_of(compared(old, new, known=stated_session_spread(10.0)), tmp_path)
    assert UNPAIRED in line
    golden(line)


@pytest.mark.parametrize("sittings", [1, 2])
def test_the_ratio_is_that_of_mean_times(tmp_path: Path, sittings: int) -> None:
    """One side varies by 10 %, the other is mostly fast and seldom slow, of the same mean."""
    times = {"old": (0.9, 1.1, 1.0, 0.9, 1.1), "new": (0.7, 0.6, 0.8, 0.7, 2.2)}
    old, new = (
        subject(
            tmp_path / side,
            {
                "a": [
                    measurement("a", trial=n, elapsed_s=x, sitting=1 + (n > 5), host="here")
                    for n, x in enumerate(each * sittings, 1)
                ]
            },
        )
        for side, each in times.items()
    )
    found = compared(old, new, known=stated_session_spread(3.0)).found
    assert isinstance(found, CrossSessionRatio if sittings == 1 else Ratio)
    assert found.ratio == pytest.approx(1.0)


def test_stored_sittings_of_the_same_test_and_machine_tell_the_spread(tmp_path: Path) -> None:
    old, new = (subject(tmp_path / n, {"a": trials("a", level)}) for n, level in (("old", 1.0), ("new", 1.3)))
    for n, level in enumerate((1.02, 0.98)):
        subject(tmp_path / f"stored{n}", {"a": trials("a", level)})
    subject(tmp_path / "elsewhere", {"a": trials("a", 5.0, host="there")})
    subject(tmp_path / "another", {"b": trials("b", 5.0)})
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "experiment.json").write_text("{")
    stored = [s for s in stored_beside(old) if s.label != new.label]
    found = compared(old, new, stored=stored).found
    assert isinstance(found, CrossSessionRatio)
    assert found.between.sessions == 3
    assert found.between.deviation == pytest.approx(0.02, rel=0.3)


def test_several_sittings_a_side_are_compared_by_their_levels(tmp_path: Path, golden: Golden) -> None:
    def sittings(*levels: float) -> list[Measurement]:
        return [
            m for n, level in enumerate(levels) for m in trials("a", level, sitting=n + 1, first=1 + 10 * n)
        ]

    old = subject(tmp_path / "old", {"a": sittings(1.0, 1.02, 0.98)})
    new = subject(tmp_path / "new", {"a": sittings(1.5, 1.52, 1.48)})
    across = compared(old, new)
    found = across.found
    assert isinstance(found, Ratio)
    assert found.count == 3
    assert found.low > 1.3
    golden(line_of(across, tmp_path))
    assert [len(part) for part in by_session(old.tests[0], "elapsed")] == [10, 10, 10]


def test_tests_belong_together_by_name_or_because_each_is_alone(tmp_path: Path) -> None:
    one = subject(tmp_path / "one", {"a": trials("a", 1.0)})
    other = subject(tmp_path / "other", {"b": trials("b", 1.0)})
    two = subject(tmp_path / "two", {"c": trials("c", 1.0), "d": trials("d", 1.0)})
    assert compared(one, other).other == "b"
    with pytest.raises(InputError, match=r"\(a\).*\(c, d\)"):
        compare_across(one, two, "elapsed")


def test_metrics_in_other_units_are_not_compared(tmp_path: Path) -> None:
    def own(name: str, unit: str) -> Subject:
        rows = [m._replace(metrics={"own": [5.0, unit]}) for m in trials("a", 1.0)]
        return subject(tmp_path / name, {"a": rows})

    with pytest.raises(InputError, match=r"other: own\b.*\bB\b.*\bs\b.*one$"):
        compare_across(own("one", "s"), own("other", "B"), "own")


def test_stored_sittings_of_another_command_do_not_count_and_a_difference_is_said(tmp_path: Path) -> None:
    def bench(name: str, command: str, level: float) -> Subject:
        made = subject(tmp_path / name, {"a": trials("a", level)})
        plan = {"tests": [{"name": "a", "command": [command], "environment": {}}]}
        return replace(made, experiment={**(made.experiment or {}), "plan": plan})

    old, new = bench("old", "sort", 1.0), bench("new", "sleep", 1.3)
    stored = [bench(f"s{n}", "sleep", 5.0) for n in range(3)]
    assert isinstance(compared(old, new, stored=stored).found, NotSupported)
    assert isinstance(
        compared(old, new, stored=[bench(f"t{n}", "sort", 1.0) for n in range(3)]).found, CrossSessionRatio
    )
    assert compared(old, bench("same", "sort", 1.3), known=stated_session_spread(3.0)).other_command is False
    differing = compared(old, new, known=stated_session_spread(3.0))
    assert differing.other_command
    assert line_of(differing, tmp_path) != line_of(replace(differing, other_command=False), tmp_path)


def test_what_cannot_be_compared_is_named_and_the_others_are_compared(tmp_path: Path) -> None:
    base, good = (
        subject(tmp_path / n, {"a": trials("a", level)}) for n, level in (("base", 1.0), ("good", 1.1))
    )
    zeros = [measurement("a", trial=n, elapsed_s=0.0) for n in range(1, 6)]
    bad = subject(tmp_path / "bad", {"a": zeros})
    found, without = compare_with_first([base, bad, good], "elapsed", between=0.02)
    assert [(a.other_label, type(a.found)) for a in found] == [(good.label, CrossSessionRatio)]
    ((label, reason),) = without
    assert label == bad.label
    assert "positive values" in reason
