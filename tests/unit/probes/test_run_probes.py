"""Probes around a launch: their order, their cost, and that none can lose a trial."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import etude.probes
from etude.probes.probe import Context, ProbeBlock, ProbeFailed, Reading
from etude.probes.run_probes import GIVE_UP_AFTER, RunProbes
from etude.results.model import METRICS

HERE = Context(engine_pid=1, elapsed_s=2.0, test="t", trial=3)


class Told:
    """A probe that does as it is told, and notes when it was asked."""

    def __init__(
        self,
        name: str,
        log: list[str] | None = None,
        *,
        reading: Any = None,
        start: Callable[[], Any] = lambda: "state",
        useless: str | None = None,
        gives: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = [] if log is None else log
        self.reading = Reading({name: [1, "s"]}) if reading is None else reading
        self.begin = start
        self.useless = useless
        self.gives = gives or {}

    def unavailable(self) -> str | None:
        return self.useless

    def start(self, context: Context) -> Any:
        self.log.append(f"start {self.name}")
        return self.begin()

    def end(self, state: Any, context: Context) -> Reading:
        self.log.append(f"end {self.name}")
        if isinstance(self.reading, Exception):
            raise self.reading
        return self.reading(state, context) if callable(self.reading) else self.reading


def once(probing: RunProbes, context: Context = HERE) -> tuple[dict[str, Any], list[ProbeBlock], list[str]]:
    probing.start(context)
    return probing.end(context)  # type: ignore[return-value]


def broken(*_: Any) -> Any:
    raise ProbeFailed("nothing\nthere")


def probes(notes: list[str]) -> list[str]:
    """Of which probe each note is."""
    return [note.split(": ")[0].removeprefix("probe ") for note in notes]


def test_the_first_to_start_is_the_last_to_end() -> None:
    log: list[str] = []
    once(RunProbes([Told("a", log), Told("b", log), Told("c", log)]))
    assert log == ["start a", "start b", "start c", "end c", "end b", "end a"]


def test_metrics_and_blocks_stand_in_the_order_of_the_probes() -> None:
    def probe(name: str) -> Told:
        return Told(name, reading=Reading({name: [1.5, "B"]}, (ProbeBlock(name, ("x",)),), (f"note-{name}",)))

    metrics, blocks, notes = once(RunProbes([probe("z"), probe("a")]))
    assert [name for name in metrics if "cost" not in name] == ["z", "a"]
    assert [block.name for block in blocks] == ["z", "a"]
    assert notes == ["probe z: note-z", "probe a: note-a"]


def test_the_end_gets_what_the_start_returned_and_what_was_measured() -> None:
    seen = []

    def reading(state: Any, context: Context) -> Reading:
        seen.append((state, context))
        return Reading()

    once(RunProbes([Told("a", reading=reading, start=lambda: 42)]))
    assert seen == [(42, HERE)]


def test_a_probe_can_be_started_without_a_context() -> None:
    probing = RunProbes([Told("a")])
    probing.start()
    assert probing.end(HERE)[0]["a"] == [1, "s"]


def test_each_cost_is_that_of_its_start_and_its_end() -> None:
    times = iter([0.0, 0.25, 1.0, 1.5, 10.0, 11.0, 20.0, 22.0])  # start a, start b, end b, end a
    metrics, _, _ = once(RunProbes([Told("a"), Told("b-c.sh")], clock=lambda: next(times)))
    assert metrics["probe_a_cost"] == [2.25, "s"]
    assert metrics["probe_b_c_sh_cost"] == [1.5, "s"]


def test_what_fails_is_null_with_the_reason_once_it_is_known_what_it_gives() -> None:
    probe = Told("a", reading=Reading({"size": [7, "B"]}))
    probing = RunProbes([probe, Told("b")])
    once(probing)
    probe.reading = OSError(5, "no luck")
    metrics, blocks, notes = once(probing)
    assert metrics["size"] == [None, "B", "OSError: [Errno 5] no luck"]
    assert metrics["b"] == [1, "s"]
    assert blocks == []
    assert probes(notes) == ["a"]
    assert notes[0].endswith("OSError: [Errno 5] no luck")


def test_what_fails_at_once_is_null_where_the_probe_says_what_it_gives() -> None:
    metrics, _, notes = once(RunProbes([Told("a", reading=broken, gives={"a_b": "J"})]))
    assert metrics["a_b"] == [None, "J", "nothing there"]
    assert probes(notes) == ["a"]
    assert notes[0].endswith(": nothing there")


def test_a_probe_whose_start_failed_is_not_asked_for_its_end() -> None:
    log: list[str] = []
    metrics, _, notes = once(RunProbes([Told("a", log, start=broken)]))
    assert log == ["start a"]
    assert "a" not in metrics
    assert probes(notes) == ["a"]
    assert notes[0].endswith(": nothing there")


@pytest.mark.parametrize("where", ["start", "reading"])
def test_after_some_failures_in_a_row_a_probe_is_not_asked_again(where: str) -> None:
    log: list[str] = []
    probe = Told("a", log, gives={"size": "B"}, **{where: broken})  # type: ignore[arg-type]
    probing = RunProbes([probe])
    notes = [once(probing)[2] for _ in range(GIVE_UP_AFTER)]
    assert ["not run again" in line for (line,) in notes] == [False] * (GIVE_UP_AFTER - 1) + [True]
    asked = len(log)
    metrics, _, said = once(probing)
    assert (len(log), said) == (asked, [])
    reason = "not run again after 3 failures in a row; the last: nothing there"
    assert metrics == {"size": [None, "B", reason], "probe_a_cost": [None, "s", reason]}


def test_a_success_in_between_begins_the_count_anew() -> None:
    probe = Told("a")
    probing, good = RunProbes([probe]), probe.reading
    for _ in range(3):
        for reading in (broken, broken, good):
            probe.reading = reading
            once(probing)
    assert probe.log.count("start a") == 9
    probe.reading = good
    assert once(probing)[0]["a"] == [1, "s"]


def test_a_probe_that_cannot_be_used_is_never_started_and_says_so_once() -> None:
    log: list[str] = []
    probing = RunProbes([Told("a", log, useless="no meters", gives={"a_b": "J"})])
    metrics, _, notes = once(probing)
    assert metrics == {"a_b": [None, "J", "no meters"], "probe_a_cost": [None, "s", "no meters"]}
    assert probes(notes) == ["a"]
    assert notes[0].endswith(": no meters")
    assert once(probing) == (metrics, [], [])
    assert log == []


def test_a_probe_without_manners_is_one_that_cannot_be_used() -> None:
    metrics, _, notes = once(RunProbes([object()]))  # type: ignore[list-item]
    assert list(metrics) == ["probe_object_cost"]
    assert probes(notes) == ["object"]
    assert "AttributeError" in notes[0]


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("not even that")


@pytest.mark.parametrize("error", [Mute(), SystemExit(3), RecursionError(), StopIteration()])
def test_no_exception_of_a_probe_goes_any_further(error: BaseException) -> None:
    def fail() -> None:
        raise error

    _, _, (note,) = once(RunProbes([Told("a", start=fail)]))
    assert note.startswith(f"probe a: failed: {type(error).__name__}")


def test_an_interrupt_does() -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RunProbes([Told("a", start=fail)]).start()


@pytest.mark.parametrize("gives", [7, ["a"], {"a b": "s"}, {3: "s"}, {"": "s"}])
def test_what_a_probe_says_it_gives_is_not_believed_unless_it_makes_sense(gives: Any) -> None:
    metrics, _, _ = once(RunProbes([Told("a", useless="no", gives=gives)]))
    assert list(metrics) == ["probe_a_cost"]


@pytest.mark.parametrize("name", ["elapsed", "user", "context_switches", "tree_cpu"])
def test_what_is_measured_already_is_no_probe_s_to_give(name: str) -> None:
    assert name in METRICS
    probing = RunProbes([Told("a", reading=Reading({name: [1, "s"], "mine": [2, "s"]}))])
    metrics, _, notes = once(probing)
    assert name not in metrics
    assert metrics["mine"] == [2, "s"]
    assert probes(notes) == ["a"]
    assert f" {name} " in notes[0]
    assert once(probing)[2] == []


def test_of_two_probes_with_one_metric_the_first_has_it() -> None:
    twins = [Told(name, reading=Reading({"x": [number, "1"]})) for number, name in enumerate("ab")]
    metrics, _, notes = once(RunProbes(twins))
    assert metrics["x"] == [0, "1"]
    assert probes(notes) == ["b"]
    assert " x " in notes[0]


def test_no_probe_can_claim_another_one_s_cost() -> None:
    metrics, _, notes = once(
        RunProbes([Told("thief", reading=Reading({"probe_b_cost": [99, "s"]})), Told("b")])
    )
    assert metrics["probe_b_cost"][0] < 99
    assert len(notes) == 1


@pytest.mark.parametrize(
    "reading",
    [
        Reading({"x": [1]}),
        Reading({"x": [1, "s", "reason"]}),
        Reading({"x": [None, "s"]}),
        Reading({"x": ["1", "s"]}),
        Reading({"x": [True, "1"]}),
        Reading({"x": [1, 2]}),
        Reading({"two words": [1, "s"]}),
        Reading({"a=b": [1, "s"]}),
        Reading({"": [1, "s"]}),
        Reading({"x": 3}),  # type: ignore[dict-item]
        Reading(blocks=(ProbeBlock("measurement", ()),)),
        Reading(blocks=("text",)),  # type: ignore[arg-type]
        {"x": [1, "s"]},
        7,
    ],
    ids=repr,
)
def test_what_is_no_reading_is_a_failure(reading: Any) -> None:
    metrics, blocks, notes = once(RunProbes([Told("a", reading=reading)]))
    assert (list(metrics), blocks) == (["probe_a_cost"], [])
    assert notes[0].startswith("probe a: failed: ")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
words = st.text("a\n\udcffé", max_size=5)
likely = st.lists(st.none() | st.integers() | st.floats() | words, max_size=4)
right = st.tuples(st.integers() | st.floats(), words) | st.tuples(st.none(), words, words)


@given(
    metrics=st.dictionaries(st.sampled_from("xyz"), right, max_size=3)
    | st.dictionaries(st.text(max_size=4) | st.just("x"), likely | anything, max_size=3),
    lines=st.lists(st.text("a\n\udcffé", max_size=8) | anything, max_size=3),
    notes=st.lists(st.text("a\n\udcffé", max_size=8), max_size=2),
)
def test_whatever_a_probe_gives_can_be_written(metrics: Any, lines: Any, notes: Any) -> None:
    reading = Reading(metrics, (ProbeBlock("b", tuple(lines)),), tuple(notes))
    found, blocks, said = once(RunProbes([Told("a", reading=reading)]))
    text = json.dumps([found, [b.lines for b in blocks], said], allow_nan=False, ensure_ascii=False)
    text.encode()
    for value, unit, *reason in found.values():
        assert type(value) in (int, float, type(None))
        assert not isinstance(value, int) or abs(value) < 2**63
        assert len(reason) == (value is None)
        assert unit.splitlines() in ([], [unit])
    assert all(len(line.splitlines()) <= 1 for block in blocks for line in block.lines)


def test_probes_bring_no_heavy_module_along() -> None:
    modules = sorted(path.stem for path in Path(etude.probes.__file__).parent.glob("[a-z]*.py"))
    assert "run_probes" in modules
    code = f"import sys, {', '.join(f'etude.probes.{name}' for name in modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"numpy", "polars", "rich", "scipy", "importlib.metadata"} & set(done.stdout.split()) == set()
