"""Going on with an interrupted experiment: nothing lost, nothing twice, no pair across sessions."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.analysis.subject import ResultNote
from etude.analysis.verdict import verdict
from etude.analysis.warnings.facts import NoteOnResult
from etude.errors import EtudeError, InputError, Interrupted, MachineRefuses, UsageError
from etude.experiment.plan import NewLimits, Plan, make_plan
from etude.experiment.progress import paired_samples, trials_of
from etude.experiment.run import resume, run
from etude.experiment.test import Test
from etude.present.sentences.comparison import precision_line
from etude.present.sentences.extension import reaching_command
from etude.present.sentences.status import status_of
from etude.results.reader import load_results
from etude.results.results import Results
from support.builders import hooked
from support.fakes import World, around, is_hook

A, B = Test("a", ("a",)), Test("b", ("b",))
WORKERS = Test("a", ("a",), workers=2)
PLANS: dict[str, Callable[[], Plan]] = {
    "repeated": lambda: make_plan([A], trials=4, seed=1),
    "one": lambda: make_plan([A], trials=4, seed=1, check_output="each"),
    "compared": lambda: make_plan([A, B], trials=5, seed=1),
    "in turn": lambda: make_plan([A, B], trials=3, seed=1, schedule="in-turn"),
    "duet": lambda: make_plan([A, B], trials=5, seed=1, schedule="duet"),
    "workers": lambda: make_plan([WORKERS, B], trials=3, seed=1),
    "shell": lambda: make_plan(["a", "b"], trials=5, seed=1, shell="/bin/sh"),
    "hooks": lambda: make_plan(hooked("a", "b"), trials=2, seed=1),
    "inner": lambda: make_plan([Test("a", ("a",), inner="auto"), B], trials=3, seed=1),
}


def world(**options: Any) -> World:
    return World({"a": around(0.01), "b": around(0.02), "/bin/sh": around(0.03)}, **options)


def cut(plan: Plan, directory: Path, number: int) -> None:
    """Run the plan with an engine that dies at its launch of that number."""

    def die(now: int, world: World) -> None:
        if now == number:
            raise MachineRefuses("the engine died")

    with pytest.raises(MachineRefuses, match="the engine died"):
        run(plan, directory=directory, make_engine=world(before=die).make_engine)


def lines(results: Results) -> dict[str, list[Any]]:
    return {name: list(rows) for name, rows in results.measurements.items()}


def notes_of(results: Results) -> list[Any]:
    return [each.facts.note for each in verdict(results).every if isinstance(each.facts, NoteOnResult)]


def check_resumed(plan: Plan, before: dict[str, list[Any]], results: Results) -> None:
    after = lines(results)
    for name, rows in before.items():
        assert after[name][: len(rows)] == rows, "what was on disk is still there"
    for name, rows in after.items():
        workers = next((t.workers for t in plan.tests if t.name == name.removesuffix(" (again)")), 1)
        assert max(Counter((m.trial, m.worker) for m in rows).values(), default=1) == 1
        assert max(Counter(m.block for m in rows if m.kept).values(), default=1) <= workers
        assert sorted({m.trial for m in rows}) == list(range(len({m.trial for m in rows})))
    for name in results.names():
        trials = trials_of(results.measurements[name])
        assert sum(t.kept for t in trials) == plan.rule.parameters["count"]
        firsts = [t.first for t in trials if t.first.why == "first run"]
        assert [m.sitting for m in firsts] == sorted({m.sitting for m in results.measurements[name]})
    sittings = results.experiment["sittings"]
    assert [s["sitting"] for s in sittings] == [1, 2]
    assert [s["how_ended"] for s in sittings] == ["the engine died", "complete"]


@pytest.mark.parametrize("name", PLANS)
def test_an_experiment_cut_at_any_launch_is_completed_by_resume(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]()
    whole = world()
    run(plan, directory=tmp_path / "whole", make_engine=whole.make_engine)
    for number in range(1, len(whole.log) + 1):
        directory = tmp_path / str(number)
        cut(plan, directory, number)
        before = lines(load_results(directory))
        done = resume(directory, make_engine=world().make_engine)
        check_resumed(plan, before, done.results)
        assert lines(done.results) == lines(load_results(directory))


@pytest.mark.parametrize("name", ["repeated", "compared", "duet", "workers"])
def test_an_experiment_that_a_signal_ended_is_completed_by_resume(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]()
    whole = world()
    run(plan, directory=tmp_path / "whole", make_engine=whole.make_engine)
    for number in range(1, len(whole.log) + 1):
        for moment in ("before", "after"):
            directory = tmp_path / f"{number}-{moment}"

            def come(now: int, world: World, number: int = number) -> None:
                if now == number:
                    world.signal(signal.SIGINT)

            with pytest.raises(Interrupted):
                run(plan, directory=directory, make_engine=world(**{moment: come}).make_engine)
            results = resume(directory, make_engine=world().make_engine).results
            for test in results.names():
                kept = [m for m in results.measurements[test] if m.kept]
                assert max(Counter((m.block, m.worker) for m in kept).values()) == 1
                assert {m.block for m in kept} >= set(range(1, plan.rule.parameters["count"] + 1))


def test_pairs_never_cross_sittings(tmp_path: Path) -> None:
    plan = PLANS["compared"]()
    torn = 0
    for number in range(3, 13):
        directory = tmp_path / str(number)
        cut(plan, directory, number)
        results = resume(directory, make_engine=world().make_engine).results
        a, b = ([m for m in results.measurements[name] if m.kept] for name in "ab")
        sitting = {name: {m.block: m.sitting for m in rows} for name, rows in (("a", a), ("b", b))}
        together = [block for block in sitting["a"] if sitting["a"][block] == sitting["b"][block]]
        pairs = paired_samples([trials_of(a), trials_of(b)], "elapsed")
        assert len(pairs[0]) == len(together)
        torn += len(together) < len(sitting["a"])
        assert verdict(results).comparisons[0].ratio.count == len(together)
    assert torn, "some cut must have torn a block in two"


def test_a_stop_rule_on_ratios_counts_whole_pairs_only(tmp_path: Path) -> None:
    plan = make_plan([A, B], seed=1, least_s=0.0)
    cut(plan, tmp_path, 9)
    results = resume(tmp_path, make_engine=world().make_engine).results
    assert verdict(results).comparisons[0].ratio.count == 10
    assert sum(m.kept for m in results.measurements["a"]) == 11


def test_the_verdict_says_that_it_was_resumed(tmp_path: Path) -> None:
    cut(PLANS["compared"](), tmp_path, 6)
    results = resume(tmp_path, make_engine=world().make_engine).results
    assert ResultNote("sessions", number=2) in notes_of(results)


def test_resuming_a_complete_experiment_measures_nothing(tmp_path: Path) -> None:
    plan = PLANS["hooks"]()
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    again = world()
    outcome = resume(tmp_path, make_engine=again.make_engine)
    assert again.log == []
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert len(outcome.results.measurements["a"]) == 3


@pytest.mark.parametrize("name", ["repeated", "compared"])
def test_a_complete_experiment_is_extended_by_trials(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]()
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    before = lines(load_results(tmp_path))
    results = resume(tmp_path, NewLimits(trials=9), make_engine=world().make_engine).results
    check_extended(results, before, 9)
    assert resume(tmp_path, make_engine=world().make_engine).results.measurements == results.measurements


def check_extended(results: Results, before: dict[str, list[Any]], count: int) -> None:
    after = lines(results)
    assert all(after[name][: len(rows)] == rows for name, rows in before.items())
    assert {sum(m.kept for m in after[name]) for name in results.names()} == {count}
    document = load_results(results.directory).experiment
    assert [s["how_ended"] for s in document["sittings"]] == ["complete", "complete"]
    (earlier,) = document["earlier_rules"]
    assert earlier["sitting"] == 1
    assert earlier["rule"] != document["plan"]["rule"]


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", PLANS)
def test_limits_that_a_complete_experiment_has_add_nothing(tmp_path: Path, name: str) -> None:
    """As of two that extend it at once: the second finds what it asks for."""
    run(PLANS[name](), directory=tmp_path, make_engine=world().make_engine)
    for _ in range(2):
        done = resume(tmp_path, NewLimits(trials=6), make_engine=world().make_engine).results
        before = contents(tmp_path)
    assert contents(tmp_path) == before
    assert len(done.experiment["sittings"]) == 2
    again = world()
    resume(tmp_path, NewLimits(trials=6), make_engine=again.make_engine)
    assert again.log == []


def test_a_target_that_is_reached_already_is_noted_and_nothing_is_measured(tmp_path: Path) -> None:
    plan = make_plan([A, B], seed=1, max_trials=10, precision=1e-9, budget_s=1e6)
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    before, again = lines(load_results(tmp_path)), world()
    for precision in (0.5, 0.4):
        done = resume(tmp_path, NewLimits(precision=precision), make_engine=again.make_engine)
        assert [each.converged for each in done.decisions] == [True]
    assert (again.log, lines(load_results(tmp_path))) == ([], before)
    document = load_results(tmp_path).experiment
    assert (len(document["sittings"]), [each["sitting"] for each in document["earlier_rules"]]) == (1, [1])
    assert document["plan"]["rule"]["parameters"]["precision"] == 0.4


def test_of_tests_in_turn_those_that_have_enough_get_no_first_run(tmp_path: Path) -> None:
    plan = make_plan([A, B], trials=3, seed=1, schedule="in-turn")
    cut(plan, tmp_path, 4)
    results = resume(tmp_path, make_engine=world().make_engine).results
    assert {m.sitting for m in results.measurements["a"]} == {1}
    assert {m.sitting for m in results.measurements["b"]} == {1, 2}


def test_an_experiment_with_a_precision_is_extended_by_each_of_its_limits(tmp_path: Path) -> None:
    plan = make_plan([A, B], seed=1, max_trials=10, precision=1e-9, budget_s=1e6)
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    before = lines(load_results(tmp_path))
    results = resume(tmp_path, NewLimits(max_trials=13), make_engine=world().make_engine).results
    check_extended(results, before, 13)
    done = resume(tmp_path, NewLimits(precision=0.5, budget_s=2e6), make_engine=world().make_engine)
    assert {sum(m.kept for m in done.results.measurements[name]) for name in "ab"} == {13}
    rule = load_results(tmp_path).experiment["plan"]["rule"]["parameters"]
    assert (rule["precision"], rule["maximum"], rule["budget_s"]) == (0.5, 13, 2e6)


@pytest.mark.parametrize(
    ("name", "limits", "option"),
    [
        ("compared", NewLimits(trials=4), "--trials 4"),
        ("compared", NewLimits(max_trials=40), "--trials N"),
        ("precise", NewLimits(trials=40), "--max-trials"),
        ("precise", NewLimits(max_trials=4), "--max-trials 4"),
        ("precise", NewLimits(budget_s=0.0), "--time 0"),
        ("precise", NewLimits(precision=2.0), "--precision 2"),
        ("capped", NewLimits(max_trials=10), "10 pairs"),
        ("capped", NewLimits(budget_s=0.02), " of 0.02 s used"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_limits_that_do_not_fit_are_refused_and_change_nothing(
    tmp_path: Path, name: str, limits: NewLimits, option: str
) -> None:
    precise = {
        "precise": lambda: make_plan([A, B], seed=1),
        "capped": lambda: make_plan(
            [A, B], seed=1, max_trials=12, precision=1e-9, budget_s=0.01, least_s=0.0
        ),
    }
    plan = (PLANS | precise)[name]()
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as caught:
        resume(tmp_path, limits, make_engine=world().make_engine)
    assert option in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_a_verdict_advises_reaches_its_target(tmp_path: Path) -> None:
    """The extension that is named allows as many trials as were said to be missing, and time for them."""
    plan = make_plan([A, B], seed=1, max_trials=10, precision=0.002, budget_s=0.001)
    noisy = World({"a": around(0.01, -0.05, 0.07, 0.01, -0.03), "b": around(0.02, 0.04, -0.06, 0.02)})
    found = verdict(run(plan, directory=tmp_path, make_engine=noisy.make_engine).results)
    (c,) = found.comparisons
    extension = reaching_command(found)
    assert c.missed
    assert extension is not None
    assert (extension.max_trials or 0) >= 10 + c.more
    assert extension.time_s is not None
    assert "not converged" in status_of(found)


def test_a_single_test_is_measured_anew_since_more_sessions_do_not_narrow_its_mean(tmp_path: Path) -> None:
    plan = make_plan([A], seed=1, max_trials=10, precision=0.002, budget_s=0.001, least_s=0.0)
    noisy = World({"a": around(0.01, -0.05, 0.07, 0.01, -0.03)})
    words = ["etude bench", "-M", "10", "--precision", "0.2%", "-o", "x", "a", "--cpu", "1"]
    done = run(plan, directory=tmp_path, make_engine=noisy.make_engine, command_line=words)
    found = verdict(done.results)
    extension = reaching_command(found)
    assert extension is not None
    assert (extension.anew, extension.precision) == (("a", "--cpu", "1"), 0.002)
    assert (extension.max_trials or 0) >= 10 + found.tests[0].more
    more = resume(tmp_path, NewLimits(max_trials=20, budget_s=5.0), make_engine=noisy.make_engine)
    (test,) = verdict(more.results).tests
    levels = test.metrics[0].levels
    assert levels is not None
    assert (levels.over, levels.groups) == ("sitting", 2)
    line = precision_line(test, verdict(more.results).asked)
    assert line is not None
    assert "2 sessions" in line
    assert str(test.more) not in line


def test_a_torn_last_line_is_cut_off_and_said(tmp_path: Path) -> None:
    plan = PLANS["one"]()
    cut(plan, tmp_path, 4)
    file = tmp_path / "a" / "results.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    results = resume(tmp_path, make_engine=world().make_engine).results
    assert results.torn == load_results(tmp_path).torn == ()
    assert ResultNote("cut before session", "a", number=2) in notes_of(results)
    assert results.experiment["sittings"][1]["torn"] == ["a"]
    assert file.read_bytes().startswith(whole[: whole.rindex(b"\n", 0, -1) + 1])
    assert sum(m.kept for m in results.measurements["a"]) == 4


def test_a_journal_that_the_engine_left_unfinished_is_gone_on_with(tmp_path: Path) -> None:
    """As after SIGKILL of both in the middle of a repetition: whole lines, and half of one."""
    plan = PLANS["repeated"]()
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    file = tmp_path / "a" / "results.jsonl"
    content = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(content[:3]) + content[3][:50])
    document = (tmp_path / "experiment.json").read_text()
    (tmp_path / "experiment.json").write_text(document.replace('"complete"', "null"))
    again = world()
    results = resume(tmp_path, make_engine=again.make_engine).results
    assert [launch.repeat.count for launch in again.log if launch.repeat] == [2]
    assert [(m.trial, m.block, m.sitting) for m in results.measurements["a"] if m.kept] == [
        (1, 1, 1),
        (2, 2, 1),
        (4, 3, 2),
        (5, 4, 2),
    ]


def test_a_resumed_experiment_keeps_its_inner_repetitions(tmp_path: Path) -> None:
    plan = PLANS["inner"]()
    cut(plan, tmp_path, 7)
    results = resume(tmp_path, make_engine=World({"a": 0.5, "b": 0.5}).make_engine).results
    assert {m.inner for m in results.measurements["a"] if m.kept} == {5}


def test_each_session_records_how_many_lines_it_left(tmp_path: Path) -> None:
    plan = PLANS["workers"]()
    cut(plan, tmp_path, 4)
    for results in (load_results(tmp_path), resume(tmp_path, make_engine=world().make_engine).results):
        recorded = {test["name"]: test["lines"] for test in results.experiment["tests"]}
        assert recorded == {name: len(rows) for name, rows in results.measurements.items()}


@pytest.mark.parametrize("left", [0, 1, 3])
def test_an_experiment_that_lost_lines_since_is_not_resumed(tmp_path: Path, left: int) -> None:
    run(PLANS["one"](), directory=tmp_path, make_engine=world().make_engine)
    file = tmp_path / "a" / "results.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:left]))
    before = file.read_bytes()
    with pytest.raises(InputError, match=f"holds {left} of the 5 lines"):
        resume(tmp_path, make_engine=world().make_engine)
    assert file.read_bytes() == before


def test_an_experiment_with_repeated_lines_is_resumed(tmp_path: Path) -> None:
    cut(PLANS["one"](), tmp_path, 4)
    file = tmp_path / "a" / "results.jsonl"
    file.write_bytes(2 * file.read_bytes())
    rows = resume(tmp_path, make_engine=world().make_engine).results.measurements["a"]
    assert load_results(tmp_path).measurements["a"] == rows
    assert len({m.trial for m in rows}) == len(rows)


def test_it_can_be_cut_and_resumed_again_and_again(tmp_path: Path) -> None:
    plan = PLANS["compared"]()
    cut(plan, tmp_path, 5)
    for _ in range(6):

        def die(now: int, world: World) -> None:
            if now == 5:
                raise MachineRefuses("the engine died")

        try:
            done = resume(tmp_path, make_engine=world(before=die).make_engine)
            break
        except EtudeError:
            continue
    assert all(sum(m.kept for m in done.results.measurements[name]) == 5 for name in "ab")
    assert len(done.results.experiment["sittings"]) > 2


def test_every_setup_is_run_again_in_a_new_sitting(tmp_path: Path) -> None:
    plan = PLANS["hooks"]()
    cut(plan, tmp_path, 9)
    again = world()
    resume(tmp_path, make_engine=again.make_engine)
    hooks = [line for launch, line in zip(again.log, again.story, strict=True) if is_hook(launch)]
    assert [hooks[0], hooks[-1]] == ["a setup", "a cleanup"]


def test_what_cannot_be_resumed_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results here"):
        resume(tmp_path, make_engine=world().make_engine)
    run(PLANS["one"](), directory=tmp_path / "made", make_engine=world().make_engine)
    file = tmp_path / "made" / "experiment.json"
    file.write_text(file.read_text().replace('"schedule"', '"order"'))
    with pytest.raises(InputError, match=r"/made.*: plan\.order: "):
        resume(tmp_path / "made", make_engine=world().make_engine)


def test_a_directory_that_holds_results_is_not_written_over(tmp_path: Path) -> None:
    run(PLANS["one"](), directory=tmp_path, make_engine=world().make_engine)
    with pytest.raises(InputError, match=f"holds results.* --resume {tmp_path}"):
        run(PLANS["one"](), directory=tmp_path, make_engine=world().make_engine)


@pytest.mark.parametrize("name", ["x" * 300, "file/below"])
def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineRefuses, match="cannot write results"):
        run(PLANS["one"](), directory=tmp_path / name, make_engine=world().make_engine)


def test_resume_waits_for_the_first_to_end_and_goes_on_from_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is still measuring when the second is started, and ends while that waits for its lock."""
    from etude.results.writer import sole_writer

    cut(PLANS["compared"](), tmp_path, 6)
    first = sole_writer(tmp_path)
    first.__enter__()

    def ends(seconds: float) -> None:
        file = tmp_path / "experiment.json"
        file.write_text(file.read_text().replace("the engine died", "complete"))
        first.__exit__(None, None, None)

    monkeypatch.setattr("time.sleep", ends)
    again = world()
    resume(tmp_path, make_engine=again.make_engine)
    assert again.log == []


def test_a_second_run_into_one_directory_is_refused_even_if_it_came_too_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from etude.results.writer import sole_writer

    first = sole_writer(tmp_path)
    first.__enter__()

    def ends(seconds: float) -> None:
        (tmp_path / "experiment.json").write_text("{}")
        first.__exit__(None, None, None)

    monkeypatch.setattr("time.sleep", ends)
    with pytest.raises(InputError, match="holds results already"):
        run(PLANS["one"](), directory=tmp_path, make_engine=world().make_engine)
    assert (tmp_path / "experiment.json").read_text() == "{}"


def test_what_the_engine_told_of_the_tlbs_is_kept_and_older_results_are_read_without(tmp_path: Path) -> None:
    tlb = [{"kind": "data", "level": 1, "page_bytes": 4096, "entries": 72}]

    def telling(watch: Any) -> Any:
        engine = world().make_engine(watch)
        engine.hello = {**engine.hello, "tlb": tlb}
        return engine

    plan, file = PLANS["one"](), tmp_path / "experiment.json"
    assert run(plan, directory=tmp_path, make_engine=telling).results.experiment["machine"]["tlb"] == tlb
    document = json.loads(file.read_text())
    del document["machine"]["tlb"]
    document["sittings"][-1]["how_ended"] = None
    file.write_text(json.dumps(document))
    assert verdict(load_results(tmp_path)).warnings is not None
    results = tmp_path / "a" / "results.jsonl"
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:-1]))
    assert resume(tmp_path, make_engine=telling).results.experiment["machine"]["tlb"] == tlb


def test_a_script_s_results_are_resumed_by_their_own_verb(tmp_path: Path) -> None:
    run(make_plan(["a"], trials=2, seed=1), directory=tmp_path, make_engine=World({"a": 1.0}).make_engine)
    file = tmp_path / "experiment.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document | {"plan": {"kind": "script"}}))
    with pytest.raises(InputError, match="etude run --resume"):
        resume(tmp_path, make_engine=World().make_engine)


@pytest.mark.parametrize("schedule", ["blocks", "in-turn", "duet"])
@pytest.mark.parametrize(
    "block", [3, 99, 10**9], ids=["of another trial", "that is not there", "that none reaches"]
)
def test_a_row_whose_block_cannot_be_is_refused_before_anything_is_measured(
    tmp_path: Path, schedule: str, block: int
) -> None:
    plan = make_plan([A, B], trials=5, seed=1, schedule=schedule)
    run(plan, directory=tmp_path, make_engine=world().make_engine)
    file = tmp_path / "b" / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    row = next(number for number, line in enumerate(lines) if json.loads(line)["block"] == 4)
    lines[row] = json.dumps(json.loads(lines[row]) | {"block": block}) + "\n"
    file.write_text("".join(lines))
    again = world()
    with pytest.raises(InputError, match=rf"{file}: .*trial \d+ is {block}\b"):
        resume(tmp_path, NewLimits(trials=6), make_engine=again.make_engine)
    assert again.log == []
    assert file.read_text() == "".join(lines)


def test_a_trial_and_a_block_that_are_far_ahead_take_no_more_trials(tmp_path: Path) -> None:
    run(PLANS["compared"](), directory=tmp_path, make_engine=world().make_engine)
    file = tmp_path / "a" / "results.jsonl"
    *lines, last = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, json.dumps(json.loads(last) | {"trial": 40, "block": 40}) + "\n"]))
    done = resume(tmp_path, NewLimits(trials=6), make_engine=world().make_engine)
    assert [sum(m.kept for m in done.results.measurements[name]) for name in "ab"] == [7, 6]
