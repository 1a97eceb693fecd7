"""A repetition is judged: what contradicts, what agrees, what cannot be told."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.repetition import (
    Repetition,
    change_of,
    direction,
    machine_differences,
    ratios_again,
    repetition,
)
from etude.analysis.verdict import Verdict, verdict
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.present.sections import repetition as again_text
from etude.present.sentences.repetition import outcome_reason
from etude.stats.cross_session import stated_session_spread
from etude.stats.ratio import Ratio, paired_ratio
from support.fakes import World
from support.golden import Golden


def ratio(percent: float, half: float, count: int = 20) -> Ratio:
    """`percent` % above 1, known to about ± `half` %."""
    error = math.log1p(half / 100) / 2.093  # t with 19 degrees
    centre = math.log1p(percent / 100)
    low, high = math.exp(centre - 2.093 * error), math.exp(centre + 2.093 * error)
    return Ratio(math.exp(centre), low, high, count, "paired", 0.95, 1.0, error, count - 1.0)


CASES = (
    (ratio(5, 1), ratio(5.5, 1), "reproduced"),
    (ratio(-5, 1), ratio(-5.5, 1), "reproduced"),
    (ratio(0.2, 1), ratio(-0.3, 1), "reproduced"),
    (ratio(0.2, 6), ratio(-0.3, 6), "undecided"),
    (ratio(5, 0.1), ratio(5.5, 0.1), "reproduced"),
    (ratio(5, 1), ratio(-5, 1), "not reproduced"),
    (ratio(1, 0.9), ratio(-1, 0.9), "not reproduced"),
    (ratio(20, 1), ratio(5, 1), "undecided"),
    (ratio(5, 1), ratio(0, 1), "not reproduced"),
    (ratio(0, 1), ratio(5, 1), "not reproduced"),
    (ratio(5, 1), ratio(4, 6), "undecided"),
    (ratio(4, 6), ratio(5, 1), "undecided"),
    (ratio(0.95, 1), ratio(-0.95, 1), "undecided"),
    (ratio(5, 1), None, "undecided"),
)


@pytest.mark.parametrize(("then", "now", "outcome"), CASES)
def test_each_case_has_its_word(then: Ratio, now: Ratio | None, outcome: str) -> None:
    (found,) = ratios_again([("a", "b", then, now)])
    assert found.outcome == outcome, found


def test_each_case_has_its_reason(golden: Golden) -> None:
    found = [ratios_again([("a", "b", then, now)])[0] for then, now, _ in CASES]
    golden("\n".join(f"{each.outcome}: {outcome_reason(each)}" for each in found))


@given(
    st.tuples(st.floats(-50, 100), st.floats(0.01, 30)), st.tuples(st.floats(-50, 100), st.floats(0.01, 30))
)
def test_then_and_now_are_judged_alike(then: tuple[float, float], now: tuple[float, float]) -> None:
    one, other = ratio(*then), ratio(*now)
    (there,), (back,) = ratios_again([("a", "b", one, other)]), ratios_again([("a", "b", other, one)])
    assert there.outcome == back.outcome
    if direction(one) * direction(other) < 0:
        assert there.outcome == "not reproduced"


def test_a_change_is_that_of_two_independent_logarithms() -> None:
    then, now = ratio(5, 2), ratio(8, 3)
    found = change_of(then, now)
    assert found is not None
    assert found.ratio == pytest.approx(1.08 / 1.05)
    error = math.hypot(then.standard_error, now.standard_error)
    assert math.log(found.high / found.low) == pytest.approx(2 * 2.032 * error, rel=0.01)
    assert found.low < 1.0 < found.high


def test_identical_experiments_are_seldom_called_not_reproduced() -> None:
    rng = np.random.default_rng(4)

    def one(effect: float) -> Ratio:
        base, other = rng.lognormal(0.0, 0.02, (2, 15))
        return paired_ratio(base, effect * other)

    for effect in (1.0, 1.03):
        pairs = [("a", "b", one(effect), one(effect)) for _ in range(1000)]
        outcomes = [ratios_again([pair])[0].outcome for pair in pairs]
        assert outcomes.count("not reproduced") < 65
        assert outcomes.count("reproduced") > 700
    gone = [ratios_again([("a", "b", one(1.06), one(1.0))])[0].outcome for _ in range(300)]
    assert np.mean([outcome == "not reproduced" for outcome in gone]) > 0.95


def test_among_many_comparisons_a_chance_contradiction_does_not_count() -> None:
    pair = ("a", "b", ratio(5, 2), ratio(9, 2))
    assert ratios_again([pair])[0].outcome == "undecided"
    others = [("a", f"c{i}", ratio(5, 2), ratio(5.2, 2)) for i in range(30)]
    assert ratios_again([pair, *others])[0].outcome == "reproduced"


@pytest.mark.parametrize("bad", [0.0, math.inf])
def test_a_ratio_without_a_logarithm_is_undecided(bad: float) -> None:
    broken = Ratio(bad, bad, bad, 5, "paired", 0.95, 1.0, 0.1, 4.0)
    (found,) = ratios_again([("a", "b", ratio(5, 1), broken)])
    assert found.outcome == "undecided"
    nothing = Ratio(2.0, 2.0, 2.0, 5, "paired", 0.95, 1.0, 0.0, 4.0)
    assert ratios_again([("a", "b", nothing, nothing)])[0].outcome == "reproduced"


def of(directory: Path, b: float, count: int = 15, level: float = 1.0, **options: Any) -> Verdict:
    rng = np.random.default_rng(int(1000 * b * level))
    noise = np.exp(0.005 * rng.normal(size=(2, count + 1)))
    times = {"a": iter(0.1 * level * noise[0]), "b": iter(0.1 * level * b * noise[1])}
    asked = make_plan(("a", "b"), trials=count, seed=1, again_every=0, **options)
    return verdict(run(asked, directory=directory, make_engine=World(times).make_engine).results)


def test_a_repetition_judges_ratios_and_refuses_levels_without_other_sittings(tmp_path: Path) -> None:
    then, now = of(tmp_path / "then", 1.05), of(tmp_path / "now", 1.052, level=1.1)
    found = repetition(then, now)
    assert found.outcome == "reproduced"
    assert [r.outcome for r in found.ratios] == ["reproduced"]
    assert [level.outcome for level in found.levels] == [None, None]
    for part in ("2 more", "--between-sessions"):
        assert part in outcome_reason(found.levels[0])


def test_a_difference_that_is_gone_is_not_reproduced(tmp_path: Path, golden: Golden) -> None:
    found = repetition(of(tmp_path / "then", 1.05), of(tmp_path / "now", 1.0))
    assert found.outcome == "not reproduced"
    assert [part.outcome for part in found.parts] == ["not reproduced", None, None]
    golden("\n".join([*list(again_text.lines(found))[:2], again_text.last_line(found)]))


def test_levels_are_judged_by_what_is_stated_or_stored(tmp_path: Path) -> None:
    then, now = of(tmp_path / "then", 1.05), of(tmp_path / "now", 1.05, level=1.1)
    stated = [repetition(then, now, known=stated_session_spread(pct)).outcome for pct in (1.0, 20.0)]
    assert stated == ["not reproduced", "reproduced"]
    stored = [of(tmp_path / f"old{i}", 1.05, level=1.0 + i / 1000) for i in (1, 2, 3)]
    by_stored = repetition(then, now, stored=[old.subject for old in stored])
    assert [level.outcome for level in by_stored.levels] == ["not reproduced"] * 2
    assert by_stored.levels[0].reason.sessions == 4


def test_tests_that_are_not_there_are_named(tmp_path: Path) -> None:
    then = of(tmp_path / "then", 1.05)
    asked = make_plan(("a",), trials=12, seed=1)
    world = World({"a": iter(np.linspace(0.1, 0.11, 13))})
    now = verdict(run(asked, directory=tmp_path / "now", make_engine=world.make_engine).results)
    found = repetition(then, now)
    assert found.outcome == "undecided"
    assert found.lost == ("b",)
    assert found.ratios[0].now is None


def test_a_repetition_is_also_words_and_data(tmp_path: Path) -> None:
    notes = ["The seed is new."]
    found = repetition(of(tmp_path / "then", 1.05), of(tmp_path / "now", 1.05), notes=notes)
    rows = list(again_text.rows(found))
    assert [row[0] for row in rows] == ["b / a", "a", "b"]
    assert rows[0][4] == "reproduced"
    said = list(again_text.lines(found))
    assert said[0].startswith("b / a: reproduced: ")
    assert said[1].startswith("a, b: ")
    assert said[1].endswith(f" {outcome_reason(found.levels[0])}.")
    assert said[2] == notes[0]
    document = json.loads(json.dumps(again_text.to_document(found, "then", "now"), allow_nan=False))
    assert (document["outcome"], document["comparisons"][0]["outcome"]) == ("reproduced", "reproduced")
    assert document["tests"][0]["outcome"] is None


def test_nothing_to_compare_is_undecided(golden: Golden) -> None:
    nothing = Repetition("elapsed", (), (), ())
    assert nothing.outcome == "undecided"
    golden(again_text.last_line(nothing))


def test_what_differs_between_machines_is_told_but_not_what_always_does() -> None:
    def machine(kernel: str, uptime: float, options: str, etude: str) -> dict[str, Any]:
        before = {
            "system": {"kernel_release": kernel, "uptime_s": uptime, "boot_id": "x"},
            "cpu": {"allowed": [0, 1], "caches": [{"level": 1, "size_bytes": 32768}]},
            "memory": {"available_bytes": uptime, "total_bytes": 10},
            "directory": {"options": options},
            "load": {"load_1": uptime},
        }
        return {"machine": {"before": before, "after": None}, "versions": {"etude": etude}}

    then, now = machine("6.1", 1.0, "rw,relatime", "0.1"), machine("6.2", 2.0, "rw,noatime", "0.2")
    del now["machine"]["before"]["cpu"]["caches"]
    assert list(map(str, machine_differences(then, now))) == [
        "system.kernel_release: 6.1 → 6.2",
        "directory.options: rw,relatime → rw,noatime",
        "version.etude: 0.1 → 0.2",
    ]
    assert machine_differences(then, then) == ()
    assert machine_differences({}, {"machine": {"before": None}}) == ()


def test_the_digest_of_a_command_that_changed_is_told_where_it_is_recorded() -> None:
    then = {"tests": [{"name": "a", "programs": {"/bin/x": "sha256:1"}}]}
    now = {"tests": [{"name": "a", "programs": {"/bin/x": "sha256:2"}}]}
    (found,) = machine_differences(then, now)
    assert str(found) == "a.programs./bin/x: sha256:1 → sha256:2"
