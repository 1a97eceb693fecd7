"""What a search keeps is what its policy saw, bit by bit, whatever ended it."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.peak.machine_state import MachineState
from etude.peak.policies import policy
from etude.peak.search_store import SearchSpec, SearchStore, from_line, open_store, peak_member, window_lines
from etude.peak.slo_ratio import Reading, contradicting, slo_ratios
from etude.peak.task import Answer, Criterion, Finding, GeneratorPart, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.results import writer
from etude.results.histograms import Histogram
from etude.results.reader import load_results
from support.builders import still_machine
from support.profiles import examples

TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0)
SIMULATED = "simulate mm1:500"
SOUGHT = SearchSpec("server", TASK, "linear", SIMULATED)
OFFER = TrialRequest(500.0, 180.0, "half way")

times = st.floats(1e-9, 1e9) | st.floats(0.001, 10.0)
ranks = st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 2**40)), max_size=30)


def counted(pairs: list[tuple[int, int]]) -> Histogram:
    rising = sorted(dict(pairs).items())
    return Histogram(
        np.array([value for value, _ in rising], dtype=np.int64),
        np.array([count for _, count in rising], dtype=np.int64),
    )


windows = st.builds(
    Window,
    duration_s=times,
    offered=st.integers(0, 2**40),
    completed=st.integers(0, 2**40),
    failed=st.integers(0, 2**40),
    mean_s=st.none() | times | st.just(math.inf),
    latency=st.none() | st.builds(counted, ranks),
)
trials = st.builds(
    Trial,
    load=times,
    runlength_s=times | st.just(math.inf),
    windows=st.lists(windows, max_size=5).map(tuple),
    cost_s=times,
    ended=st.sampled_from(["whole", "early", "died"]),
    limited=st.sampled_from([None, "server", "generator"]),
    note=st.text(st.characters(codec="utf-8"), max_size=20),
    generator_busy=st.none() | times,
    lateness_p99_s=st.none() | times,
    machine=st.none() | st.builds(MachineState, st.none() | times, st.none() | times),
    generators=st.lists(
        st.builds(
            GeneratorPart,
            st.text(st.characters(codec="utf-8"), max_size=5),
            st.sampled_from([None, "server", "generator"]),
            st.none() | times,
            st.none() | times,
            st.none() | times,
        ),
        max_size=3,
    ).map(tuple),
)


def same(one: Trial, other: Trial) -> bool:
    """Equal in all members; arrays by what they hold."""
    return repr(plain(one)) == repr(plain(other))


def plain(trial: Trial) -> object:
    told = [
        (w.duration_s, w.offered, w.completed, w.failed, w.mean_s, None if w.latency is None else
         (w.latency.values.tolist(), w.latency.counts.tolist()))
        for w in trial.windows
    ]  # fmt: skip
    generator = (trial.generator_busy, trial.lateness_p99_s)
    return (
        trial.load,
        trial.runlength_s,
        told,
        trial.cost_s,
        trial.ended,
        trial.limited,
        trial.note,
        generator,
        trial.machine,
    )


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)


def trial(load: float = 500.0, mean: float = 0.03, ended: str = "whole") -> Trial:
    window = Window(10.0, 5000, 4990, 10, mean)
    return Trial(load, 180.0, (window,) * 3, 200.0, ended)  # type: ignore[arg-type]


@given(trial=trials)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_trial_comes_back_from_its_line_bit_by_bit(trial: Trial) -> None:
    line = {"windows": window_lines(trial.windows), "peak": peak_member(OFFER, trial)}
    assert same(from_line(json.loads(json.dumps(line, allow_nan=False)), "results.jsonl:1"), trial)


def test_a_histogram_of_another_tool_comes_back_as_text_alone() -> None:
    from etude.results.histograms import decode, encode

    latency = decode(encode([1500, 1500, 2_000_000, 40_000_000], digits=3, lowest=1000, highest=10**10))
    (line,) = window_lines([Window(1.0, 4, 4, 0, 0.01, latency)])
    assert "latency_exact" not in line
    assert line["latency"].startswith("HISTFA")


@given(found=st.lists(trials, min_size=1, max_size=4))
@settings(suppress_health_check=list(HealthCheck), max_examples=examples(15))
def test_a_search_comes_back_from_disk(found: list[Trial], tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("kept")
    with open_store(directory, SOUGHT) as kept:
        for each in found:
            kept.keep(OFFER, each)
    again = SearchStore(directory)
    assert all(map(same, again.trials(), found))
    assert len(again.trials()) == len(found)
    assert again.sought == SOUGHT


def test_what_decisions_rest_on_is_the_same_after_going_on(tmp_path: Path) -> None:
    made = [trial(100 / 3, 0.1 + 0.2), trial(500.0, 0.04), trial(100 / 3, 1 / 7), trial(700.0, ended="died")]
    for number, each in enumerate(made):
        with open_store(tmp_path, SOUGHT) as kept:
            assert len(kept.trials()) == number
            kept.keep(OFFER, each)
    assert slo_ratios(TASK, SearchStore(tmp_path).trials()) == slo_ratios(TASK, made)
    assert SearchStore(tmp_path).trials() == made
    assert len(SearchStore(tmp_path).document["sittings"]) == 4


def test_the_directory_is_read_as_any_results(tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial(250.0))
        kept.keep(OFFER, trial(500.0, ended="died"))
        kept.answered(Answer(250.0, 200.0, 300.0, 0.95, True, "enough"))
    results = load_results(tmp_path)
    assert results.names() == ("load=250", "load=500")
    ((good,), (bad,)) = results.measurements.values()
    assert good.kept
    assert good.metrics["response"] == [0.03, "s"]
    assert good.metrics["reading"] == [0.75, "1"]
    assert good.metrics["bench_time"] == [200.0, "s"]
    assert (bad.kept, bad.why) == (False, "failed")
    assert results.experiment["sittings"][0]["how_ended"] == "complete"
    from etude.analysis.subject import subject_of
    from etude.analysis.verdict import verdict

    assert verdict(results).primary == "response"
    assert subject_of(results).tests[0].parameters == {"load": "250"}


def test_the_response_of_a_trial_is_the_one_that_its_criterion_judges(tmp_path: Path) -> None:
    """Requests that had no answer at the end of an overloaded trial are in both, or the two would differ."""
    behind = Trial(500.0, 180.0, (Window(10.0, 5000, 4000, 0, 0.03, under_way=1000, waited_s=900.0),), 200.0)
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, behind)
    ((made,),) = load_results(tmp_path).measurements.values()
    assert made.metrics["response"][0] == pytest.approx((4000 * 0.03 + 900) / 5000)
    assert made.metrics["response"][0] == pytest.approx(
        made.metrics["reading"][0] * TASK.goal.criteria[0].limit
    )


def test_the_commands_of_a_harness_are_single_lines() -> None:
    text = '[commands]\nstart = """\nexec server \\\n   --port 1"""\nload = "load {load}"\napart = true\n'
    spec = replace(SOUGHT, harness=text)
    assert spec.commands == {"start": "server --port 1", "load": "load {load}"}
    assert (spec.apart, spec.simulated) == (True, False)
    assert (SOUGHT.commands, SOUGHT.apart, SOUGHT.simulated) == ({}, False, True)


def test_an_answer_stands_beside_its_trials(tmp_path: Path) -> None:
    answer = Answer(None, 400.0, math.inf, 0.95, False, "it is above", (Finding("above-highest", "5000/s"),))
    with open_store(tmp_path, SOUGHT) as kept:
        kept.answered(answer)
    assert SearchStore(tmp_path).answer == answer
    stored = json.loads((tmp_path / "experiment.json").read_text())["answer"]
    assert stored["high"] == "inf"
    assert stored["findings"] == [{"kind": "above-highest", "what": "5000/s"}]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (SearchSpec("server", Task(TASK.goal, 50.0, 5000.0, within=0.05), "linear", SIMULATED), "within .*0.1, .*0.05"),
        (SearchSpec("server", Task(Goal((Criterion("mean", 0.1),)), 50.0, 5000.0), "linear", SIMULATED), "40 ms"),
        (SearchSpec("server", TASK, "binsearch", SIMULATED), "linear, .*binsearch"),
        (SearchSpec("server", TASK, "linear", SIMULATED, {"disks": "2"}), "factors .*disks=2"),
        (SearchSpec("server", TASK, "linear", "simulate knee:500"), "harness"),
    ],
)  # fmt: skip
def test_another_task_is_refused_in_one_line(changed: SearchSpec, said: str, tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial())
    with (
        pytest.raises(InputError, match=said) as raised,
        open_store(tmp_path, changed),
    ):
        pass
    assert str(raised.value).startswith(f"{tmp_path}: ")
    assert "\n" not in str(raised.value)


def test_a_directory_without_a_trial_takes_any_task(tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT):
        pass
    other = SearchSpec("server", TASK, "binsearch", SIMULATED)
    with open_store(tmp_path, other) as kept:
        kept.keep(OFFER, trial())
    assert SearchStore(tmp_path).sought == other


def test_more_time_is_the_same_search(tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial())
    more = SearchSpec("server", Task(TASK.goal, 50.0, 5000.0, budget_s=60.0), "linear", SIMULATED)
    with open_store(tmp_path, more) as kept:
        assert len(kept.trials()) == 1
    assert SearchStore(tmp_path).task.budget_s == 60.0


def test_the_same_harness_written_otherwise_is_the_same(tmp_path: Path) -> None:
    one, other = (SearchSpec("server", TASK, "linear", text) for text in ("a = 1\n", "# why\na   = 1"))
    with open_store(tmp_path, one):
        pass
    with open_store(tmp_path, other):
        pass


def test_a_torn_last_trial_is_dropped_and_made_again(tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial())
        kept.keep(OFFER, trial(500.0, 0.05))
    file = tmp_path / "load-500" / "results.jsonl"
    whole = file.read_bytes()
    for cut in (1, len(whole) // 4, len(whole) // 2 - 1):
        file.write_bytes(whole[:-cut])
        assert len(SearchStore(tmp_path).trials()) == 1
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial(500.0, 0.05))
    assert SearchStore(tmp_path).trials() == [trial(), trial(500.0, 0.05)]


def _emptied(place: Path) -> None:
    (place / "results.jsonl").write_bytes(b"")


def _removed(place: Path) -> None:
    shutil.rmtree(place)


def _cut(place: Path) -> None:
    file = place / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-5])


def test_a_line_that_stands_there_again_counts_once_and_one_that_was_changed_is_refused(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        for load in (500.0, 600.0, 600.0):
            kept.keep(OFFER, trial(load))
        kept.answered(Answer(600.0, 500.0, 700.0, 0.95, True, ""))
    file = tmp_path / "load-600" / "results.jsonl"
    content = file.read_bytes()
    first, second = content.splitlines(keepends=True)
    file.write_bytes(content + second)
    assert (len(SearchStore(tmp_path).trials()), SearchStore(tmp_path).lost) == (3, {})
    file.write_bytes(first + first)
    assert SearchStore(tmp_path).lost == {"load=600": 1}
    for changed in (first.replace(b'"trial":2', b'"trial":3'), first.replace(b'"trial":2', b'"trial":1')):
        file.write_bytes(changed + second)
        with pytest.raises(InputError, match=r"load-600/results.jsonl: trial [13] "):
            SearchStore(tmp_path)


@pytest.mark.parametrize("lose", [_emptied, _removed, _cut])
@pytest.mark.parametrize("counted", [True, False], ids=["counted", "of an older version"])
def test_a_trial_that_is_gone_is_told_and_going_on_makes_a_new_one(
    tmp_path: Path, lose: Callable[[Path], None], counted: bool
) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        for load in (500.0, 600.0, 700.0):
            kept.keep(OFFER, trial(load))
        kept.answered(Answer(600.0, 500.0, 700.0, 0.95, True, ""))
    assert SearchStore(tmp_path).lost == {}
    if not counted:
        document = json.loads((tmp_path / "experiment.json").read_text())
        for test in document["tests"]:
            del test["lines"]
        (tmp_path / "experiment.json").write_text(json.dumps(document))
    lose(tmp_path / "load-600")
    kept = SearchStore(tmp_path)
    assert kept.lost == {"load=600": 1}
    with pytest.raises(InputError, match=r"1( or more)? of load=600"):
        kept.check_whole("trials")
    with open_store(tmp_path, SOUGHT) as kept:
        assert kept.lost == {"load=600": 1}
        kept.keep(OFFER, trial(600.0))
        kept.answered(Answer(600.0, 500.0, 700.0, 0.95, True, ""))
    kept = SearchStore(tmp_path)
    assert kept.lost == {}
    assert [each.load for each in kept.trials()] == [500.0, 700.0, 600.0]


@pytest.mark.parametrize("text", ["{}", "[]", "x", '{"test": 1}', ""])
def test_a_line_that_is_no_trial_is_named(text: str, tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial())
    file = tmp_path / "load-500" / "results.jsonl"
    file.write_text(text + "\n" + file.read_text())
    with pytest.raises(InputError, match=r"results\.jsonl:1: "):
        SearchStore(tmp_path)


@given(data=st.data())
@settings(suppress_health_check=list(HealthCheck), max_examples=examples(60))
def test_any_line_is_a_trial_or_an_error_of_the_file(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("kept")
    with open_store(directory, SOUGHT) as kept:
        kept.keep(OFFER, trial())
    file = directory / "load-500" / "results.jsonl"
    line = json.loads(file.read_text())
    spoilt = data.draw(
        st.sampled_from(["peak", "windows", "trial", "load", "ended", "mean_s", "latency", "offered"])
    )
    value = data.draw(
        st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2) | st.just({})
    )
    for holder in (line, line["peak"], line["windows"][0]):
        if spoilt in holder or spoilt == "latency":
            holder[spoilt] = value
    file.write_text(json.dumps(line) + "\n")
    with contextlib.suppress(InputError):
        SearchStore(directory)


def spoilt(document: Any, path: Sequence[str | int], value: Any) -> Any:
    """The document with another value in one place; None: without it."""
    spoilt = copy.deepcopy(document)
    holder = spoilt
    for step in path[:-1]:
        holder = holder[step]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return spoilt


def places(document: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Of all members, and of what is in them."""
    if isinstance(document, dict | list):
        for name in document if isinstance(document, dict) else range(len(document)):
            yield (*path, name)
            yield from places(document[name], (*path, name))


def ended(directory: Path) -> Any:
    """experiment.json of a search with an answer."""
    found = Answer(500.0, 450.0, math.inf, 0.95, True, "", (Finding("no-windows", "of 1 trial"),))
    seeded = replace(TASK, seed_load=400.0, seed_spread=0.1, seed_shapes=(("mm1 0.15", 0.5),), budget_s=60.0)
    with open_store(directory, replace(SOUGHT, task=seeded, factors={"disks": "1"})) as kept:
        kept.keep(OFFER, trial())
        kept.answered(found)
    return json.loads((directory / "experiment.json").read_text())


def refused(directory: Path) -> str:
    """What is said against a search that is read and decided upon; nothing where all is well."""
    try:
        kept = SearchStore(directory)
        policy(kept.sought.policy).best(kept.task, kept.trials(), "")
        policy("posterior").decide(kept.task, kept.trials())
    except EtudeError as error:
        return str(error)
    return ""


@given(data=st.data())
@settings(suppress_health_check=list(HealthCheck), max_examples=examples(30))
def test_any_member_is_meant_or_refused_in_one_line(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("kept")
    document = ended(directory)
    path = data.draw(st.sampled_from([each for each in places(document) if each[0] != "machine"]))
    value = data.draw(st.sampled_from([None, -1, 0, 3.5, True, "x", [1], [["mm1 0.15", "x"]], {}, 10**19]))
    (directory / "experiment.json").write_text(json.dumps(spoilt(document, path, value)))
    assert "\n" not in refused(directory)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("plan", "task", "goal", "criteria", 0, "limit"), "x", "plan.task.goal.criteria[0].limit 'x'"),
        (("plan", "task", "confidence"), 95, "plan.task.confidence 95"),
        (("plan", "task", "seed_shapes"), [["mm1 0.15", -1]], "plan.task.seed_shapes -1"),
        (("plan", "task", "goal", "criteria"), [], "goal"),
        (("plan", "factors", "disks"), 2, "factors"),
        (("plan", "harness"), None, "plan.harness"),
        (("answer", "low"), "x", "answer.low 'x'"),
    ],
)  # fmt: skip
def test_a_member_that_cannot_be_meant_is_named(path: Any, value: Any, said: str, tmp_path: Path) -> None:
    document = ended(tmp_path)
    (tmp_path / "experiment.json").write_text(json.dumps(spoilt(document, path, value)))
    why = refused(tmp_path).removeprefix(str(tmp_path))
    assert [word for word in said.split() if word not in why] == []


@pytest.mark.parametrize(
    ("member", "value"),
    [("low", 600.0), ("high", 1.0), ("rate", 2.0), ("rate", -1.0), ("confidence", 7.0), ("confidence", -0.5)],
)
def test_an_answer_that_contradicts_itself_is_refused(member: str, value: float, tmp_path: Path) -> None:
    document = ended(tmp_path)
    document["answer"] |= {"high": 550.0}
    SearchStore(tmp_path)
    (tmp_path / "experiment.json").write_text(json.dumps(spoilt(document, ("answer", member), value)))
    with pytest.raises(InputError, match=rf"experiment\.json: answer\.(low|{member})"):
        SearchStore(tmp_path)


@pytest.mark.parametrize(
    "path",
    [("windows", 0, name) for name in ("duration_s", "offered", "completed", "failed", "mean_s")]
    + [("peak", name) for name in ("load", "runlength_s", "cost_s")],
)
def test_a_figure_below_0_of_a_trial_is_refused(path: tuple[str | int, ...], tmp_path: Path) -> None:
    ended(tmp_path)
    (file,) = tmp_path.glob("*/results.jsonl")
    line = json.loads(file.read_text())
    holder = line[path[0]] if path[0] == "peak" else line["windows"][0]
    file.write_text(json.dumps(spoilt(line, path, -5 if isinstance(holder[path[-1]], int) else -5.0)) + "\n")
    with pytest.raises(InputError, match=str(path[-1])):
        SearchStore(tmp_path)


def test_an_answer_above_a_load_that_failed_in_all_its_trials_is_contradicted() -> None:
    known = [Reading(100.0, (0.5, 0.4)), Reading(600.0, (50.0, 60.0)), Reading(900.0, (70.0, 0.9))]
    assert contradicting(5000.0, known) == known[1]
    assert contradicting(600.0, known) is None
    assert (
        contradicting(5000.0, [known[0], known[2], Reading(600.0, (50.0,)), Reading(700.0, (1.2, 1.3))])
        is None
    )


def test_a_search_of_a_version_that_knew_less_of_seeds_goes_on(tmp_path: Path) -> None:
    with open_store(tmp_path, SOUGHT) as kept:
        kept.keep(OFFER, trial())
    file = tmp_path / "experiment.json"
    document = json.loads(file.read_text())
    for name in ("seed_spread", "seed_shapes"):
        del document["plan"]["task"][name]
    file.write_text(json.dumps(document))
    with open_store(tmp_path, SOUGHT) as kept:
        assert len(kept.trials()) == 1
    seeded = replace(SOUGHT, task=replace(TASK, seed_load=400.0, seed_spread=0.1))
    with pytest.raises(InputError, match="seed_load was None, now 400"), open_store(tmp_path, seeded):
        pass


def test_what_a_newer_version_asked_for_is_not_overlooked(tmp_path: Path) -> None:
    document = ended(tmp_path)
    document["plan"]["task"]["colour"] = "red"
    (tmp_path / "experiment.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="colour"):
        SearchStore(tmp_path)


def test_a_search_that_goes_on_has_no_answer_until_it_has_another(tmp_path: Path) -> None:
    ended(tmp_path)
    sought = SearchStore(tmp_path).sought
    with open_store(tmp_path, sought) as kept:
        assert kept.answer is None
    assert SearchStore(tmp_path).answer is None


def test_two_at_once_do_not_share_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOCK_WAIT_S", 0.05)
    with open_store(tmp_path, SOUGHT) as kept:
        with pytest.raises(MachineRefuses, match=str(tmp_path)), open_store(tmp_path, SOUGHT):
            pass
        kept.keep(OFFER, trial())
    assert len(SearchStore(tmp_path).trials()) == 1


def test_results_of_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(
        json.dumps(
            {
                "format": "etude-experiment",
                "version": 1,
                "verb": "bench",
                "tests": [],
                "plan": {},
                "sittings": [],
            }
        )
    )
    with pytest.raises(InputError, match="etude bench"):
        SearchStore(tmp_path)


@pytest.mark.parametrize("call", ["fdatasync", "replace"])
def test_a_full_disk_says_how_a_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    with open_store(tmp_path, SOUGHT) as kept, monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(MachineRefuses, match="the same -o") as refused:
            kept.keep(OFFER, trial())
    assert "--resume" not in str(refused.value)
