"""A search on disk: a results directory whose trials are exactly what the policy saw (docs/reference/formats.md, "A
search").

Each load is a test and each trial a measurement with its windows, so `etude stats`, `plot` and `bundle` can read it.
Each line also has a member `peak`: the request, its cost and its end. Numbers are read back bit by bit: a resumed
search decides as if it had never been interrupted (JSON readers convert a repr back to the same bits). A histogram is
written as HdrHistogram in base64, with the fewest digits that preserve its classes; if five digits do not, its values
and counts are written as well.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from etude.codec import decoded, finite, plain
from etude.errors import EDITED, InputError
from etude.experiment.session import new_document, replace_plan
from etude.osutil.trust import check_for_root
from etude.peak.machine_state import machine_member
from etude.peak.policies import policy
from etude.peak.record import (
    FILE,
    RESUME_HINT,
    Record,
    append,
    check_numbers,
    cut_torn_line,
    digest,
    instant,
    open_record,
    whole_lines,
)
from etude.peak.task import Answer, GeneratorPart, Goal, Task, Trial, TrialRequest, slo_ratio_of
from etude.peak.window import Window, joined_windows
from etude.results.histograms import Histogram, decode, encode
from etude.results.model import Measurement, check_measurement, to_line
from etude.results.writer import write_experiment

KIND, VERB = "peak", "peak"
CHANGEABLE_FIELDS = ("budget_s", "closed")
"""Fields of a task that may change when a search is resumed."""
ROUNDING = 1e-9
"""Tolerance of a stored probability above 1: it is a sum of floats."""

METRICS: Mapping[str, Mapping[str, str]] = {
    "response": {"unit": "s", "kind": "cost"},
    "reading": {"unit": "1", "kind": "ratio"},
    "offered": {"unit": "1/s", "kind": "rate"},
    "completed": {"unit": "1/s", "kind": "rate"},
    "bench_time": {"unit": "s", "kind": "cost"},
}
"""Metrics of a trial, besides `elapsed`, the duration of its load."""


@dataclass(frozen=True)
class SearchSpec:
    """Settings of the search in a directory."""

    name: str
    task: Task
    policy: str
    harness: str
    """Text of HARNESS.toml; for a simulation, the argument of --simulate."""
    factors: Mapping[str, str] = field(default_factory=dict)

    @property
    def simulated(self) -> bool:
        """True if no real server was loaded."""
        return self.harness.split()[:1] == ["simulate"]

    @property
    def commands(self) -> dict[str, str]:
        """Commands of the harness, each in one line; empty for a simulation or a harness in Python."""
        texts = self._section("commands")
        return {
            name: re.sub(r"\\\s*\n\s*|\s+", " ", text).strip().removeprefix("exec ")
            for name, text in texts.items()
            if isinstance(text, str)
        }

    @property
    def apart(self) -> bool:
        """True if the server had a node of its own."""
        return self._section("commands").get("apart") is True

    def _section(self, name: str) -> dict[str, Any]:
        try:
            found = tomllib.loads(self.harness).get(name)
        except tomllib.TOMLDecodeError:
            return {}
        return found if isinstance(found, dict) else {}

    def plan(self) -> dict[str, Any]:
        """Plan for experiment.json."""
        return {
            "kind": KIND,
            "primary": "response",
            "name": self.name,
            "policy": self.policy,
            "task": plain(self.task),
            "factors": dict(self.factors),
            "harness": self.harness,
        }


class SearchStore(Record):
    """The trials of one search in a results directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Read the directory. Raises InputError: it holds no search, or one that cannot be read."""
        super().__init__(Path(directory))
        self.sought = _sought(self.document, self.directory)
        told, where = self.document.get("answer"), f"{self.directory}/experiment.json"
        self._answer = None if told is None else _answer_of(told, where)
        self._last = 0
        """Number of the last trial on disk."""
        self._read = self._load()
        self._since = instant()

    @property
    def task(self) -> Task:
        """The task, with the budget of the last session."""
        return self.sought.task

    @property
    def answer(self) -> Answer | None:
        """The stored answer; None if there is none."""
        return self._answer

    def trials(self) -> list[Trial]:
        """All trials, in order."""
        return list(self._read)

    def keep(self, request: TrialRequest, trial: Trial) -> None:
        """Write a trial to disk; at return it survives a crash of Étude and of the machine. Raises MachineRefuses: it
        cannot be written; the file ends with its last whole trial."""
        number = self._last + 1
        name = f"load={trial.load:.6g}"
        path = self.place(name, {"load": f"{trial.load:.6g}"}) / "results.jsonl"
        line = to_line(self._of_trial(name, number, trial))
        line["windows"] = window_lines(trial.windows)
        line["peak"] = peak_member(request, trial)
        append(path, line)
        self._read.append(trial)
        self._last = number
        self._since = instant()

    def begin_new_session(self) -> None:
        """Begin a new session, which may end with another answer."""
        self._answer, self.document["answer"] = None, None
        self.begin_session()

    def answered(self, answer: Answer) -> None:
        """Record the answer and the end of this session."""
        self._answer, self.document["answer"] = answer, plain(answer)
        self.end("complete", [answer.why])

    def _load(self) -> list[Trial]:
        files = [self.directory / entry["directory"] / FILE for entry in self.document["tests"]]
        read = [(path, number, trial) for path in files for number, trial in _read_trials(path)]
        check_numbers([(path, number) for path, number, _ in read], "trial")
        found = sorted(((number, trial) for _, number, trial in read), key=lambda each: each[0])
        self._find_gaps([number for number, _ in found])
        self._last = max((number for number, _ in found), default=0)
        return [trial for _, trial in found]

    def _of_trial(self, name: str, number: int, trial: Trial) -> Measurement:
        failed = trial.ended in ("died", "not-made")
        return self._measurement(
            name,
            number,
            number,
            self.document["sittings"][-1],
            self._since,
            command=[self.sought.name, name],
            failed=failed,
            why="failed" if failed else None if trial.of_server else "generator",
            metrics=_metrics(self.task.goal, trial),
            note=trial.note,
        )


def open_store(
    directory: str | os.PathLike[str], sought: SearchSpec, command_line: Sequence[str] = ()
) -> AbstractContextManager[SearchStore]:
    """Open a directory for a search (`open_record`): a new one, or one with the same search, which is resumed.

    Raises:
        InputError: it holds another search, or something else; MachineRefuses: it cannot be written, or another process
        writes to it.
    """
    return open_record(
        directory, lambda path: _opened(path, sought, command_line), SearchStore.begin_new_session
    )


def _opened(path: Path, sought: SearchSpec, command_line: Sequence[str]) -> SearchStore:
    if not (path / "experiment.json").exists():
        plan = sought.plan()
        document = new_document(sought.name, VERB, command_line, plan, digest(plan), (), METRICS)
        write_experiment(path, document, RESUME_HINT)
        return SearchStore(path)
    check_for_root(path / "experiment.json")
    cut_torn_line(path)
    kept = SearchStore(path)
    if kept.trials() and (how := _differs(kept.sought, sought)) is not None:
        raise InputError(f"{path}: holds another search ({how}); name another directory with -o")
    kept.sought = sought
    replace_plan(kept.document, sought.plan(), digest(sought.plan()), sought.name)
    return kept


def _differs(then: SearchSpec, now: SearchSpec) -> str | None:
    for name in asdict(now.task):
        a, b = getattr(then.task, name), getattr(now.task, name)
        if a != b and name not in CHANGEABLE_FIELDS:
            return f"{name.removesuffix('_s')} was {_shown(a)}, now {_shown(b)}"
    for what, a, b in (
        ("policy", then.policy, now.policy),
        ("factors", dict(then.factors), dict(now.factors)),
    ):
        if a != b:
            return f"{what} was {_shown(a)}, now {_shown(b)}"
    return None if _meaning(then.harness) == _meaning(now.harness) else "its harness was another"


def _shown(value: Any) -> str:
    if isinstance(value, Goal):
        return " and ".join(map(str, value.criteria))
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items()) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _meaning(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text


def _sought(document: Mapping[str, Any], path: Path) -> SearchSpec:
    plan = document["plan"]
    if plan.get("kind") != KIND:
        raise InputError(f"{path}: holds results of etude {document.get('verb', '…')}, and no search")
    where = f"{path}/experiment.json"
    task = task_of(plan.get("task"), where, "plan.task")
    return replace(decoded(SearchSpec, plan, where, "plan"), task=task)


def _answer_of(told: Any, where: str) -> Answer:
    """The answer as stored. Raises InputError: a member is missing or invalid, or its numbers contradict each other."""
    found = decoded(Answer, told, where, "answer")
    if found.low > found.high:
        wrong = f"low: {found.low:g} is above `high`, {found.high:g}"
    elif found.rate is not None and not found.low <= found.rate <= found.high:
        wrong = f"rate: {found.rate:g} is outside {found.low:g} … {found.high:g}, its interval"
    elif found.confidence > 1 + ROUNDING:
        wrong = f"confidence: expected a number from 0 to 1, found {found.confidence:g}"
    else:
        return found
    raise InputError(f"{where}: answer.{wrong}; was it edited?")


def task_of(told: Any, where: str, at: str) -> Task:
    """The task as stored; members unknown to an older version get their defaults. Raises InputError: a member is
    missing, unknown or invalid."""
    known = {"closed": told.get("whole", False)} | told if isinstance(told, dict) else told
    task = decoded(Task, known, where, at, only=True)
    if not task.goal.criteria:
        raise InputError(f"{where}: {at}.goal has no criterion; was it edited?")
    return task


def _read_trials(path: Path) -> list[tuple[int, Trial]]:
    found = []
    for number, text in whole_lines(path):
        try:
            line = orjson.loads(text)
            check_measurement(line)
            found.append((int(line["trial"]), from_line(line, f"{path}:{number}")))
        except EDITED as error:
            raise InputError(f"{path}:{number}: no trial of a search: {error}; was it edited?") from None
    return found


def _metrics(goal: Goal, trial: Trial) -> dict[str, Any]:
    ran = trial.ran_s
    offered, completed = (sum(getattr(w, name) for w in trial.windows) for name in ("offered", "completed"))
    read = slo_ratio_of(goal, trial)
    known: dict[str, tuple[float | None, str]] = {
        "elapsed": (ran, "s"),
        "response": (joined_windows(trial.windows).mean_so_far_s, "s"),
        "reading": (read, "1"),
        "offered": (offered / ran if ran else None, "1/s"),
        "completed": (completed / ran if ran else None, "1/s"),
        "bench_time": (trial.cost_s, "s"),
    }
    return {
        name: [value, unit] if value is not None and math.isfinite(value) else [None, unit, "nothing came"]
        for name, (value, unit) in known.items()
    }


def stored_answer(kept: SearchStore) -> Answer:
    """The stored answer; without one, the best answer so far."""
    if kept.answer is not None:
        return kept.answer
    return policy(kept.sought.policy).best(kept.task, kept.trials(), "the search was not ended")


DIGITS = (3, 4, 5)
"""Candidate numbers of significant digits of a histogram."""

OF_GENERATOR = ("generator_busy", "lateness_p99_s")
OF_PART = ("busy", "lateness_p99_s", "began_s")


def peak_member(request: TrialRequest, trial: Trial) -> dict[str, Any]:
    """Member `peak` of a trial's line, in addition to those of any measurement."""
    return {
        "load": finite(trial.load),
        "runlength_s": finite(trial.runlength_s),
        "cost_s": finite(trial.cost_s),
        "ended": trial.ended,
        "limited": trial.limited,
        "note": trial.note,
        "why": request.why,
        **{name: finite(value) for name in OF_GENERATOR if (value := getattr(trial, name)) is not None},
        **({} if trial.machine is None else {"machine": machine_member(trial.machine)}),
        **({"generators": list(map(part_member, trial.generators))} if trial.generators else {}),
    }


def part_member(part: GeneratorPart) -> dict[str, Any]:
    """One host's part of a trial's load, without unknown members."""
    known = {name: finite(value) for name in OF_PART if (value := getattr(part, name)) is not None}
    return {"host": part.host, "limited": part.limited} | known


def window_lines(windows: Sequence[Window]) -> list[dict[str, Any]]:
    """Windows in the format of docs/reference/formats.md, with `mean_s`."""
    return [_window_line(window) for window in windows]


def from_line(line: Mapping[str, Any], where: str) -> Trial:
    """The trial of a line that is a measurement. `where`: FILE:LINE.

    Raises:
        InputError: the line is not of a search, or a member is missing or has a wrong type; `errors.EDITED`: a
        histogram is invalid.
    """
    if "peak" not in line:
        raise InputError(f"{where}: no trial of a search: it lacks `peak`; was it edited?")
    peak = line["peak"]
    if isinstance(peak, dict):
        peak = {"ended": None, "note": None} | peak | {"windows": ()}
    windows = line.get("windows") or ()
    return replace(
        decoded(Trial, peak, where, "peak"),
        windows=tuple(
            replace(
                decoded(Window, {**each, "latency": None}, where, f"windows[{n}]"), latency=_counted(each)
            )
            for n, each in enumerate(windows)
        ),
    )


def _window_line(window: Window) -> dict[str, Any]:
    line: dict[str, Any] = {
        "duration_s": finite(window.duration_s),
        "offered": int(window.offered),
        "completed": int(window.completed),
        "failed": int(window.failed),
        "mean_s": None if window.mean_s is None else finite(float(window.mean_s)),
    }
    if window.latency is not None:
        line |= _latency(window.latency)
    if window.under_way is not None:
        line["under_way"] = window.under_way
    return line if window.waited_s is None else line | {"waited_s": finite(float(window.waited_s))}


def _latency(counted: Histogram) -> dict[str, Any]:
    for digits in DIGITS:
        text = encode(counted.values, counted.counts, digits=digits)
        read = decode(text)
        if np.array_equal(read.values, counted.values) and np.array_equal(read.counts, counted.counts):
            return {"latency": text}
    exact = {"values": counted.values.tolist(), "counts": counted.counts.tolist()}
    return {"latency": encode(counted.values, counted.counts), "latency_exact": exact}


def _counted(line: Mapping[str, Any]) -> Histogram | None:
    exact, text = line.get("latency_exact"), line.get("latency")
    if exact is not None:
        values, counts = (np.array(exact[name], dtype=np.int64) for name in ("values", "counts"))
        if values.shape != counts.shape or min(values.min(initial=0), counts.min(initial=0)) < 0:
            raise ValueError("latency_exact: expected values and counts, as many of each, 0 or more")
        return Histogram(values, counts)
    return None if text is None else decode(text)
