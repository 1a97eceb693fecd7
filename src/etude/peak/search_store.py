"""A search on disk: a results directory whose trials are exactly what the policy saw (docs/formats.md, "A search").

Each load is a test and each trial a measurement with its windows, so `etude stats`, `plot` and `bundle` can read it.
Each line also has a member `peak`: the request, its cost and its end. Numbers are read back bit by bit: a resumed
search decides as if it had never been interrupted.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from etude.codec import decoded, plain
from etude.errors import EDITED, InputError
from etude.experiment.session import new_document, replace_plan
from etude.osutil.trust import check_for_root
from etude.peak.goal import Goal
from etude.peak.policies.registry import policy
from etude.peak.record import (
    FILE,
    Record,
    append,
    begin,
    check_numbers,
    cut_torn_line,
    digest,
    instant,
    locked_directory,
    whole_lines,
)
from etude.peak.slo_ratio import slo_ratio_of
from etude.peak.task import Answer, Task, Trial, TrialRequest
from etude.peak.trial_lines import from_line, peak_member, window_lines
from etude.results.model import Measurement, check_measurement, to_line

KIND, VERB = "peak", "peak"
CHANGEABLE_FIELDS = ("budget_s", "closed")
"""Fields of a task that may change when a search is resumed."""

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
        """Read the directory.

        Raises:
            InputError: it holds no search, or one that cannot be read.
        """
        super().__init__(Path(directory))
        self.sought = _sought(self.document, self.directory)
        told, where = self.document.get("answer"), f"{self.directory}/experiment.json"
        self._answer = None if told is None else decoded(Answer, told, where, "answer")
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
        """Write a trial to disk; at return it survives a crash of Étude and of the machine.

        Raises:
            MachineRefuses: it cannot be written; the file ends with its last whole trial.
        """
        number = self._last + 1
        name = f"load={trial.load:.6g}"
        path = self.place(name, {"load": f"{trial.load:.6g}"}) / "results.jsonl"
        line = to_line(self._measurement(name, number, trial))
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

    def _measurement(self, name: str, number: int, trial: Trial) -> Measurement:
        start, start_ns = self._since
        failed = trial.ended in ("died", "not-made")
        kept = trial.of_server and not failed
        sitting = self.document["sittings"][-1]
        return Measurement(
            test=name,
            trial=number,
            block=number,
            order=0,
            worker=0,
            host=sitting["host"],
            sitting=sitting["sitting"],
            boot_id=sitting["boot_id"],
            command=[self.sought.name, f"load={trial.load:.6g}"],
            start=start,
            start_ns=start_ns,
            inner=1,
            exit_status=1 if failed else 0,
            signal=None,
            timed_out=False,
            cancelled=False,
            error=None,
            kept=kept,
            why=None if kept else "failed" if failed or trial.of_server else "generator",
            metrics=_metrics(self.task.goal, trial),
            notes=[trial.note] if trial.note else None,
        )


@contextmanager
def open_store(
    directory: str | os.PathLike[str], sought: SearchSpec, command_line: Sequence[str] = ()
) -> Iterator[SearchStore]:
    """Open a directory for a search, locked: a new one, or one with the same search, which is resumed.

    An exception is recorded in experiment.json as the end of the session.

    Raises:
        InputError: it holds another search, or something else; MachineRefuses: it cannot be written, or another process
        writes to it.
    """
    with locked_directory(directory) as path:
        kept = _opened(path, sought, command_line)
        kept.begin_new_session()
        try:
            yield kept
        except BaseException as error:
            kept.end(str(error) or type(error).__name__, [])
            raise


def _opened(path: Path, sought: SearchSpec, command_line: Sequence[str]) -> SearchStore:
    if not (path / "experiment.json").exists():
        document = new_document(
            sought.name, VERB, command_line, sought.plan(), digest(sought.plan()), (), METRICS
        )
        begin(path, document)
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
    """The first difference between two searches, as text; None if there is none."""
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
    """Content of a harness file, independent of blanks and comments."""
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


def task_of(told: Any, where: str, at: str) -> Task:
    """The task as stored; members unknown to an older version get their defaults.

    Raises:
        InputError: a member is missing, unknown or invalid.
    """
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
    answered = sum(w.completed for w in trial.windows if w.mean_s is not None)
    total = sum(w.completed * w.mean_s for w in trial.windows if w.mean_s is not None)
    read = slo_ratio_of(goal, trial)
    known: dict[str, tuple[float | None, str]] = {
        "elapsed": (ran, "s"),
        "response": (total / answered if answered else None, "s"),
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
