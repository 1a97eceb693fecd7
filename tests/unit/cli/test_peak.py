"""`etude peak`: what it says, what it keeps, how it ends; on simulated servers, and on policies and benches of ours."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from etude.errors import MachineRefuses
from etude.peak.search import Bench, DeadlinePolicy, EarlyStop
from etude.peak.search_store import SearchStore
from etude.peak.task import Answer, Criterion, Finding, Goal, Task, Trial, TrialRequest
from etude.peak.window import Window
from etude.present.progress.capacity import PeakDisplay
from etude.present.sections.peak import load_columns, trials_table
from etude.present.sentences.peak import (
    answer_lines,
    missed_line,
    ran_text,
    reading_texts,
    span_text,
    why_missed,
)
from etude.results.histograms import Histogram
from support.golden import Golden

Etude = Callable[..., int]
TASK = Task(Goal((Criterion("mean", 0.04),)), 50.0, 5000.0)


def made(load: float, mean: float, **changes: object) -> Trial:
    window = Window(10.0, int(load * 10), int(load * 10), 0, mean)
    return Trial(load, 180.0, (window,) * 2, 190.0, **changes)  # type: ignore[arg-type]


class Doubling:
    """Doubles until a load is too much; says how often it was asked."""

    name = "doubling"

    def decide(self, task: Task, trials: Sequence[Trial]) -> TrialRequest | Answer:
        last = trials[-1].load if trials else task.seed_load or task.lowest
        if trials and task.goal.reading(trials[-1].windows) > 1:
            return Answer(0.75 * last, last / 2, last, task.confidence, task.within >= 0.1, "it is bracketed")
        return TrialRequest(2 * last if trials else last, 60.0, "twice as much")

    def enough(
        self, task: Task, trials: Sequence[Trial], offer: TrialRequest, windows: Sequence[Window]
    ) -> bool:
        return len(windows) >= 2

    def best(self, task: Task, trials: Sequence[Trial], why: str) -> Answer:
        high = min((t.load for t in trials if task.goal.reading(t.windows) > 1), default=math.inf)
        low = max((t.load for t in trials if task.goal.reading(t.windows) <= 1), default=0.0)
        return Answer(None, low, high, task.confidence, False, why)


class Straight:
    """A harness in Python: its response is its load in µs per request/s."""

    name, text, task = "straight", "straight 1", TASK
    ended: tuple[type[BaseException] | None, ...] = ()
    fails_at: BaseException | None = None

    @contextmanager
    def bench(self, factors: Mapping[str, str], place: Path) -> Iterator[Bench]:
        self.factor = float(factors.get("slow", "1"))
        try:
            yield self
        finally:
            type(self).ended = (*type(self).ended, sys.exc_info()[0])

    def run(self, offer: TrialRequest, enough: EarlyStop) -> Trial:
        if type(self).fails_at is not None and offer.load >= 200:
            raise type(self).fails_at
        windows: list[Window] = []
        while len(windows) < 6 and not (windows and enough(windows)):
            rate = int(10 * offer.load)
            windows.append(Window(10.0, rate, rate, 0, self.factor * offer.load * 1e-4))
        return Trial(offer.load, 60.0, tuple(windows), 30.0, "early" if len(windows) < 6 else "whole")


@pytest.fixture(autouse=True)
def _mine(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mine")
    Straight.ended, Straight.fails_at = (), None
    module.Doubling, module.Straight = Doubling, Straight  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", module)


def peak(etude: Etude, *arguments: str) -> int:
    return etude("peak", "mine:Straight", "--policy", "mine:Doubling", "-o", "r", *arguments)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def test_the_answer_is_in_both_units_with_interval_and_confidence(
    etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert peak(etude) == 0
    shown = capsys.readouterr()
    first, second, third, *_ = shown.out.splitlines()
    assert numbers(first)[:5] == [600.0, 40.0, 400.0, 800.0, 95.0]
    assert numbers(second) == [40.0, 400.0, 1, 80.0, 800.0, 1]
    assert numbers(third) == [5, 5, 2, 67]
    golden(shown.out)
    rows = shown.err.splitlines()
    assert rows[0].split()[:3] == ["no.", "load", "measured"]
    assert rows[1].split() == [
        "1",
        "50.00/s",
        "5.000",
        "ms",
        "12",
        "%",
        "20",
        "s",
        "early",
        "30",
        "s",
        "50.00",
        "…",
        "?/s",
    ]
    assert rows[-1].endswith("400.0 … 800.0/s")


def test_the_loads_next_to_the_answer_are_rows_and_what_is_unknown_is_no_column() -> None:
    answer = Answer(150.0, 100.0, 200.0, 0.95, True, "it is bracketed")
    trials = [made(50.0, 0.02), made(100.0, 0.02), made(200.0, 0.08)]
    columns = {column.heading: column.cells for column in load_columns(TASK, answer, trials)}
    assert columns["load"] == ["100.0/s", "200.0/s"]
    assert {"offered", "completed", "errors", "mean"} <= columns.keys()
    assert not {"p50", "p99.9", "lateness p99", "headroom"} & columns.keys()
    known = [replace(trial, generator_busy=0.2, lateness_p99_s=0.001) for trial in trials]
    columns = {column.heading: column.cells for column in load_columns(TASK, answer, known)}
    assert columns["headroom"] == ["75 %", "75 %"]
    assert columns["lateness p99"] == ["1.000 ms", "1.000 ms"]
    died = Trial(100.0, 180.0, (), 190.0, "died")
    assert load_columns(TASK, answer, []) == load_columns(TASK, answer, [died]) == []


@pytest.mark.parametrize(
    ("criterion", "kept"),
    [
        (Criterion("mean", 0.04), "mean"),
        (Criterion("percentile", 0.1, 99.0), "p99"),
        (Criterion("errors", 0.01), ""),
    ],
    ids=["mean", "p99", "errors"],
)
def test_no_screen_is_too_narrow_for_what_the_goal_limits(criterion: Criterion, kept: str) -> None:
    answer = Answer(150.0, 100.0, 200.0, 0.95, True, "it is bracketed")
    times = Histogram(np.array([30_000_000]), np.array([1000]))
    trial = Trial(100.0, 10.0, (Window(10.0, 1000, 1000, 0, 0.03, times),), 11.0)
    columns = load_columns(replace(TASK, goal=Goal((criterion,))), answer, [trial])
    named = {column.heading for column in columns if column.rank == 0}
    assert {"load", "completed", "errors"} <= named
    assert named & {"mean", "p50", "p90", "p99", "p99.9"} == {kept} - {""}


def test_a_target_that_is_not_met_is_exit_status_1(
    etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert peak(etude, "--within", "5%", "-q") == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("Not converged. ")
    (missed,) = [line for line in shown.out.splitlines() if line.startswith("The target ")]
    assert numbers(missed) == [5.0, 95]
    assert "not met: it" in missed
    golden(missed)
    assert shown.err == ""


def test_the_same_directory_goes_on_and_another_task_is_refused(
    etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert peak(etude, "--budget", "1m", "-q") == 1
    assert len(SearchStore("r").trials()) == 2
    capsys.readouterr()
    assert peak(etude) == 0
    shown = capsys.readouterr()
    assert numbers(shown.err.splitlines()[0]) == [2, 60]
    assert shown.err.startswith("resumed: ")
    assert len(SearchStore("r").trials()) == 5
    assert shown.out.startswith("Resumed. ")
    assert peak(etude, "--confidence", "99") == 3
    refused = capsys.readouterr().err
    assert refused.startswith("etude: r: ")
    assert "confidence was 0.95, now 0.99" in refused
    golden(refused)
    assert peak(etude, "--factor", "slow=2") == 3
    assert "factors was none, " in capsys.readouterr().err


def test_json_has_the_answer_and_every_trial(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    assert peak(etude, "--json", "--factor", "slow=4") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["version"]) == ("etude-peak", 1)
    (found,) = document["searches"]
    assert (found["rate"], found["low"], found["high"], found["kept"]) == (150.0, 100.0, 200.0, True)
    assert found["factors"] == {"slow": "4"}
    assert [trial["load"] for trial in found["trials"]] == [50.0, 100.0, 200.0]
    assert found["trials"][0]["response_s"] == pytest.approx(0.02)
    assert [found["trials"][0][name] for name in ("offered", "completed", "errors")] == [50.0, 50.0, 0.0]
    assert found["trials"][0]["headroom"] is None


@pytest.mark.parametrize(("error", "code", "said"), [
    (KeyboardInterrupt(), 130, "ended by SIGINT"),
    (MachineRefuses("the server does not start"), 5, "the server does not start"),
], ids=["interrupt", "refused"])  # fmt: skip
def test_whatever_ends_it_the_trials_are_kept_and_the_system_is_stopped(
    etude: Etude, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    Straight.fails_at = error
    assert peak(etude, "-q") == code
    line = capsys.readouterr().err
    assert line.startswith(f"etude: {said}; 2 trials ")
    assert "-o r " in line
    assert line.count("\n") == 1
    assert Straight.ended == (type(error),)
    assert said in SearchStore("r").document["sittings"][0]["how_ended"]
    Straight.fails_at = None
    assert peak(etude, "-q") == 0
    assert [trial.load for trial in SearchStore("r").trials()] == [50.0, 100.0, 200.0, 400.0, 800.0]


def test_stored_searches_are_shown_again_and_drawn_beside_each_other(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert peak(etude, "-q") == 0
    said = capsys.readouterr().out
    assert etude("peak", "r") == 0
    assert capsys.readouterr().out == said
    assert etude("peak", "mine:Straight", "--policy", "mine:Doubling", "-o", "s", "--within", "1%", "-q") == 1
    capsys.readouterr()
    assert etude("peak", "r", "s", "--figures", "f", "--format", "png") == 1
    assert capsys.readouterr().out.count("Peak rate: ") == 2
    drawn = {path.stem for path in Path("f").iterdir()}
    assert drawn == {"load-factors", "time-at-loads", "searches-over-load"}


def test_the_seed_of_a_simulated_surface_is_no_servers_peak(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("surface", "--simulate", "DB_TP", "--budget", "1 h", "-o", "map") in (0, 1)
    capsys.readouterr()
    search = next(Path("map").glob("*/search"))
    assert etude("peak", str(search)) in (0, 1)
    assert "simulated server" not in capsys.readouterr().out


def test_a_search_that_was_not_ended_is_shown_as_far_as_it_came(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    Straight.fails_at = KeyboardInterrupt()
    assert peak(etude, "-q") == 130
    capsys.readouterr()
    assert etude("peak", "r") == 1
    assert "at least 100.0/s " in capsys.readouterr().out
    assert etude("peak", "r", "--json") == 1
    (search,) = json.loads(capsys.readouterr().out)["searches"]
    assert search["status"] == ["not converged", "unfinished"]


def test_a_deadline_that_has_come_gives_the_best_so_far(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert peak(etude, "--deadline", "2001-01-01T00:00", "-q") == 1
    assert re.search("not met: .*deadline", capsys.readouterr().out)


def test_a_deadline_ends_the_trial_under_way_and_begins_none_that_does_not_fit() -> None:
    left = [100.0]
    punctual = DeadlinePolicy(Doubling(), lambda: left[0])
    offer = punctual.decide(TASK, [])
    assert isinstance(offer, TrialRequest)
    window = Window(10.0, 500, 500, 0, 0.001)
    assert not punctual.enough(TASK, [], offer, [window])
    left[0] = 0.0
    assert punctual.enough(TASK, [], offer, [window])
    left[0] = 150.0
    assert isinstance(punctual.decide(TASK, [made(50.0, 0.001)]), Answer)
    left[0] = 171.0
    assert isinstance(punctual.decide(TASK, [made(50.0, 0.001)]), TrialRequest)
    assert datetime.now(UTC).tzinfo is UTC


def test_a_simulated_server_takes_the_place_of_a_harness(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("peak", "--simulate", "mm1:700", "--policy", "mine:Doubling", "-o", "r")
    assert etude(*arguments) == 0
    shown = capsys.readouterr()
    assert "Peak rate: 600.0/s" in shown.out
    (truth,) = [line for line in shown.out.splitlines() if "700/s" in line]
    assert "14 % below" in truth
    assert shown.out.startswith("Simulated. ")
    assert etude("peak", "r", "--json") == 0
    assert json.loads(capsys.readouterr().out)["searches"][0]["status"] == ["simulated"]
    trials = SearchStore("r").trials()
    assert (
        etude("peak", "--simulate", "mm1:700", "--policy", "mine:Doubling", "-o", "s", "--speed", "1e9", "-q")
        == 0
    )
    assert SearchStore("s").trials() == trials


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "expected one HARNESS.toml"),
    (["a.toml", "b.toml"], "expected one HARNESS.toml"),
    (["x.toml", "--simulate", "mm1"], "--simulate replaces"),
    (["--simulate", "nix"], "--simulate nix: "),
    (["--simulate", "mm1:-3"], "--simulate mm1:-3: "),
    (["--simulate", "mm1:x"], "--simulate mm1:x: "),
    (["--simulate", "mm1", "--factor", "disks=2"], "--factor is for"),
    (["mine:Straight", "--factor", "=2"], "expected NAME=VALUE"),
    (["mine:Straight", "--speed", "2"], "--speed is for --simulate"),
    (["mine:Straight", "--seed-load", "0"], "--seed-load: '0': "),
    (["mine:Straight", "--deadline", "25:00"], "--deadline: '25:00'"),
    (["mine:Straight", "--policy", "nix"], "'nix'"),
    (["mine:Nix"], "etude: mine:Nix: "),
    (["nowhere:Nix"], "etude: nowhere:Nix: "),
    (["mine:Straight", "--calibrate"], "with --seed-load"),
    (["--simulate", "mm1", "--rehearse", "--calibrate"], "with argument --rehearse"),
    (["mine:Straight", "--searches", "0"], "--searches: '0': "),
])  # fmt: skip
def test_what_cannot_be_meant_is_one_line(
    etude: Etude, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert etude("peak", *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("etude-results").exists() or not list(Path("etude-results").iterdir())


def test_a_rehearsal_says_cost_and_how_often_it_is_right(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--rehearse", "--searches", "2", "--policy", "binsearch", "--fixed-cost", "60")
    assert etude("peak", "--simulate", "mm1", *arguments) == 0
    shown = capsys.readouterr().out
    assert "(median)" in shown
    assert "of 2 searches" in shown
    assert etude("peak", "--simulate", "mm1", *arguments, "--json") == 0
    document = json.loads(capsys.readouterr().out)["rehearsal"]
    assert document["curves"].keys() == {"mm1"}
    assert document["all"]["searches"] == 2


def test_a_calibration_suggests_run_length_and_trials_and_goes_on(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("peak", "--simulate", "mm1", "--calibrate", "-o", "c", "--format", "png")
    assert etude(*arguments) == 0
    shown = capsys.readouterr()
    assert re.search(r"^Suggested .*: run length \d+ s, \d+ trials: ", shown.out, re.MULTILINE)
    assert {path.name for path in Path("c").glob("*.png")} == {
        "readings-over-load.png", "readings-over-runlength.png", "trials-needed.png"}  # fmt: skip
    made_once = SearchStore("c").trials()
    assert etude(*arguments, "-q") == 0
    again = capsys.readouterr()
    assert again.out == shown.out
    assert SearchStore("c").trials() == made_once


def test_a_stored_calibration_is_shown_as_one(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    assert etude("peak", "--simulate", "mm1", "--calibrate", "-o", "c", "-q", "--json") == 0
    made_once = json.loads(capsys.readouterr().out)["calibration"]
    assert etude("peak", "c", "--json") == 0
    (stored,) = json.loads(capsys.readouterr().out)["searches"]
    assert stored["calibration"] == made_once
    assert stored["status"] == ["simulated"]
    assert etude("peak", "c", "--figures", ".", "--format", "png") == 0
    shown = capsys.readouterr().out
    assert "variation" in shown
    assert Path("trials-needed.png").exists()


def test_a_complete_search_shown_again_by_its_command_is_as_it_was(etude: Etude) -> None:
    arguments = ("peak", "--simulate", "mm1", "-o", "s", "-q")
    assert etude(*arguments) == 0
    once = json.loads(Path("s/experiment.json").read_text())
    assert etude(*arguments) == 0
    again = json.loads(Path("s/experiment.json").read_text())
    assert again["sittings"] == once["sittings"]
    assert again["machine"] == once["machine"]


def test_an_answer_without_a_rate_says_its_bounds_and_findings(golden: Golden) -> None:
    finding = Finding("above-highest", "0.31 of the limit at 5000/s")
    answer = Answer(None, 5000.0, math.inf, 0.95, False, finding.what, (finding,))
    lines = answer_lines(TASK, answer, [made(5000.0, 0.0124)])
    assert "at least 5,000/s " in lines[0]
    assert f"{finding.kind}: {finding.what}" in lines
    assert "allow higher loads" in missed_line(TASK, answer)
    golden("\n".join(lines))


def test_where_the_lowest_load_is_too_much_lower_ones_are_advised_once() -> None:
    findings = (
        Finding("below-lowest", "100, the lowest load, is too much already"),
        Finding("stalling", "2 of 55"),
    )
    answer = Answer(None, 0.0, 100.0, 0.95, False, findings[0].what, findings)
    assert why_missed(answer) == f"{findings[0].what}: allow lower loads"
    assert why_missed(replace(answer, findings=findings[1:])) == findings[0].what


def test_requests_that_fail_at_the_lowest_load_are_the_reason_rather_than_that_load():
    below, failing = Finding("below-lowest", "10 is too much"), Finding("failing", "all of 37 failed at 10")
    for findings, first in (((below, failing), failing), ((below,), below)):
        answer = Answer(None, 0, 10, 0.97, kept=False, why=below.what, findings=findings)
        assert why_missed(answer).startswith(first.what)


def test_where_the_generator_was_the_limit_higher_loads_are_not_advised():
    above, limited = Finding("above-highest", "2102 is fine"), Finding("generator-limited", "2 of 6")
    alone, both = (
        why_missed(Answer(None, 2102, math.inf, 0.97, kept=False, why=above.what, findings=findings))
        for findings in ((above,), (above, limited))
    )
    assert alone != both


def test_notes_of_a_search_stand_below_its_table_and_are_three_at_most(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert peak(etude, "-q") == 0
    capsys.readouterr()
    file = Path("r/experiment.json")
    document = json.loads(file.read_text())
    document["answer"]["findings"] = [{"kind": "stalling", "what": f"window {n}"} for n in range(7)]
    file.write_text(json.dumps(document))
    assert etude("peak", "r") == 0
    lines = capsys.readouterr().out.splitlines()
    notes = [n for n, line in enumerate(lines) if "window " in line]
    assert len(notes) == 3
    assert min(notes) > max(n for n, line in enumerate(lines) if "400.0/s  " in line)
    assert "4 more notes" in lines[max(notes) + 1]


def test_a_finding_that_stands_in_the_way_is_said_once() -> None:
    finding = Finding("stalling", "2 of 55 windows carry half of all response time")
    answer = Answer(500.0, 480.0, 520.0, 0.95, False, f"{finding.kind}: {finding.what}", (finding,))
    assert "\n".join(answer_lines(TASK, answer, [])).count("2 of 55 windows") == 1


def test_an_interval_that_does_not_show_the_target_is_said_to_be_the_policys_own(golden: Golden) -> None:
    wide, narrow = (Answer(500.0, 500 - w, 500 + w, 0.95, True, "") for w in (100.0, 50.0))
    surer = Answer(500.0, 400.0, 600.0, 0.9996, True, "")
    first, second, third = (answer_lines(TASK, answer, [])[0] for answer in (wide, narrow, surer))
    assert "not show" in first
    assert "not show" not in second
    assert numbers(second)[-1:] == [10]
    assert numbers(third)[-5:] == [400.0, 600.0, 95, 10, 99.9]
    assert "not show" not in third
    golden(f"{first}\n{second}\n{third}")


def test_the_interval_is_of_the_confidence_that_was_asked_for_however_sure_the_search_is() -> None:
    unsure = Answer(500.0, 400.0, 700.0, 0.6, False, "the budget is used up")
    assert numbers(answer_lines(TASK, unsure, [])[0])[-3:] == [400.0, 700.0, 95]


def test_readings_are_in_the_unit_of_the_criterion_that_is_met_least() -> None:
    goal = Goal((Criterion("mean", 0.04), Criterion("errors", 0.01)))
    task = Task(goal, 1.0, 64.0, whole=True, closed=True)
    failing = Trial(8.0, 10.0, (Window(10.0, 100, 98, 2, 0.02),), 10.0)
    assert reading_texts(task, failing) == ("2.0 % errors", "200 %")
    assert reading_texts(task, made(8.0, 0.03)) == ("30.00 ms", "75 %")
    assert reading_texts(task, made(8.0, 0.03, limited="generator")) == ("–", "generator")
    assert reading_texts(task, made(8.0, 0.03, ended="died")) == ("30.00 ms", "died")
    assert span_text(task, 4.0, 8.0) == "4 … 8 clients"


def test_no_response_time_is_given_of_requests_of_which_none_was_answered() -> None:
    failed = Trial(8.0, 10.0, (Window(10.0, 100, 0, 100),), 10.0)
    mean, errors = Criterion("mean", 0.04), Criterion("errors", 0.01)
    alone, both = (Task(Goal(criteria), 1.0, 64.0) for criteria in ((mean,), (mean, errors)))
    assert reading_texts(both, failed) == ("100 % errors", "> 5000 %")
    assert not numbers(reading_texts(alone, failed)[0])
    (line,) = (
        each
        for each in answer_lines(alone, Answer(None, 0.0, 8.0, 0.95, False, "why"), [failed])
        if "Next" in each
    )
    assert numbers(line) == [8.0, 1]
    assert ran_text(made(8.0, 0.03, ended="early")) == "20 s early"


def test_whole_rates_are_rates() -> None:
    task = replace(TASK, whole=True)
    assert (task.load_text(192.0), span_text(task, 180.0, 204.0)) == ("192/s", "180 … 204/s")
    assert replace(task, closed=True).load_text(192.0) == "192 clients"
    assert trials_table(task, [made(192.0, 0.03)], "key").headings[1] == "load, /s"


class Screen(io.StringIO):
    """A terminal of 80 columns."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def plain(line: str) -> str:
    """Without styles."""
    return re.sub(r"\x1b\[\d*m", "", line)


def test_a_terminal_shows_the_trial_under_way_and_a_line_of_80_columns_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"TERM": "xterm", "COLUMNS": "80", "LANG": "C.UTF-8", "LC_ALL": ""}.items():
        monkeypatch.setenv(name, value)
    screen, now = Screen(), [0.0]
    display = PeakDisplay(screen, TASK, Doubling(), clock=lambda: now[0])
    offer = TrialRequest(1234.5, 180.0, "twice as much")
    display.begins(offer)
    assert screen.getvalue().endswith(f"1,234/s: {offer.why}; preparing")
    for seconds in (1, 2, 3):
        now[0] = float(seconds)
        display.window(offer, (Window(10.0, 9, 9, 0, 0.03),) * seconds)
    under_way = screen.getvalue().rpartition("1,234/s: ")[2]
    assert under_way.startswith("30 s of 3 min: 75 % ")
    assert under_way.endswith(f"; {offer.why}")
    for load in (1234.5, 2469.0):
        display.made(offer, made(load, 0.03 if load < 2000 else 3.0, note="slow", limited="server"))
    lines = [plain(line.rpartition("\x1b[K")[2]) for line in screen.getvalue().split("\n")[:-1]]
    assert len(lines) == 5, "a heading, and two lines for each trial with a note"
    assert max(map(len, lines)) <= 80
    cells = re.split(" {2,}", lines[-2])
    assert cells[-5:] == ["> 2.000 s", "behind", "20 s", "6 min", "1,234 … 2,469/s"]


@pytest.mark.parametrize(("width", "columns"), [(80, 7), (60, 5), (40, 3)])
def test_a_narrow_terminal_has_a_line_a_trial_with_fewer_columns(
    monkeypatch: pytest.MonkeyPatch, width: int, columns: int
) -> None:
    for name, value in {"TERM": "xterm", "COLUMNS": str(width), "LANG": "C.UTF-8", "LC_ALL": ""}.items():
        monkeypatch.setenv(name, value)
    screen = Screen()
    display = PeakDisplay(screen, TASK, Doubling())
    for load in (1234.5, 2469.0):
        display.made(TrialRequest(load, 180.0, "twice as much"), made(load, 0.03 if load < 2000 else 3.0))
    heading, *rows = [plain(line.rpartition("\x1b[K")[2]) for line in screen.getvalue().split("\n")[:-1]]
    assert len(rows) == 2
    assert max(map(len, (heading, *rows))) <= width
    assert heading.endswith("peak in (95 %)")
    assert len(re.split(r"\s{2,}", heading.strip())) == columns
    assert "1,234 … 2,469/s" in rows[1]
