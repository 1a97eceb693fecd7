"""A search on disk: a results directory whose trials say exactly what the policy saw (docs/formats.md, "A search").

Each load is a test, each trial a measurement with its windows, so `etude stats`, `plot` and `bundle` read it. Beside
the usual members a line has `peak`: what was asked, what it cost and how it ended. Numbers come back bit by bit: a
search that is gone on with decides as if it had never been interrupted.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from etude.errors import InputError
from etude.experiment.sitting import boot_id, new_document
from etude.results.check import check_measurement
from etude.results.model import Measurement, to_line
from etude.results.reader import drop_torn_trial, read_experiment
from etude.results.writer import directory_name, refused, replace_json, sole_writer
from etude.testbed import snapshot
from etude.workbench.goal import Criterion, Goal
from etude.workbench.readings import reading
from etude.workbench.task import Answer, Offer, Task, Trial
from etude.workbench.trial_lines import BadTrial, finite, from_line, peak_member, window_lines

KIND, VERB = "peak", "peak"
MAY_CHANGE = ("budget_s",)
"""Of a task: what may be another when a search is gone on with."""

METRICS: Mapping[str, Mapping[str, str]] = {
    "response": {"unit": "s", "kind": "cost"},
    "reading": {"unit": "1", "kind": "ratio"},
    "offered": {"unit": "1/s", "kind": "rate"},
    "completed": {"unit": "1/s", "kind": "rate"},
    "bench_time": {"unit": "s", "kind": "cost"},
}
"""Of a trial, beside `elapsed`: how long load was offered."""


@dataclass(frozen=True)
class Sought:
    """What one directory holds a search for."""

    name: str
    task: Task
    policy: str
    harness: str
    """The text of HARNESS.toml; of a simulation, the words after --simulate."""
    factors: Mapping[str, str] = field(default_factory=dict)

    def plan(self) -> dict[str, Any]:
        """As experiment.json has it."""
        return {
            "kind": KIND,
            "primary": "response",
            "name": self.name,
            "policy": self.policy,
            "task": _finite_all(asdict(self.task)),
            "factors": dict(self.factors),
            "harness": self.harness,
        }


class Kept:
    """The trials of one search, as they lie in a results directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Read what is there.

        Raises:
            InputError: it holds no search, or one that cannot be read.
        """
        self.directory = Path(directory)
        self.document = read_experiment(self.directory)
        self.sought = _sought(self.document, self.directory)
        self._read = self._load()
        self._since = _instant()

    @property
    def task(self) -> Task:
        """What was searched for, with the budget of the last sitting."""
        return self.sought.task

    @property
    def answer(self) -> Mapping[str, Any] | None:
        """The answer as it was stored, once there is one."""
        return self.document.get("answer")

    def trials(self) -> list[Trial]:
        """All that were made, in the order in which they were."""
        return list(self._read)

    def keep(self, offer: Offer, trial: Trial) -> None:
        """Put a trial on disk; when this returns it survives whatever ends Étude, and the machine.

        Raises:
            MachineRefuses: it cannot be written; the file ends with its last whole trial.
        """
        number = len(self._read) + 1
        name = f"load={trial.load:.6g}"
        path = self._place(name, trial.load) / "results.jsonl"
        line = to_line(self._measurement(name, number, trial))
        line["windows"] = window_lines(trial.windows)
        line["peak"] = peak_member(offer, trial)
        _append(path, json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._read.append(trial)
        self._since = _instant()

    def end(self, how: str, answer: Answer | None = None) -> None:
        """Note how this sitting ended."""
        self.document["sittings"][-1] |= {
            "end": _now(),
            "how_ended": how,
            "decisions": [] if answer is None else [answer.why],
        }
        self.document["answer"] = None if answer is None else _finite_all(asdict(answer))
        self.document["machine"]["after"] = snapshot.take()
        self.save()

    def save(self) -> None:
        """Put experiment.json on disk as it is now.

        Raises:
            MachineRefuses: it cannot be written.
        """
        replace_json(self.directory / "experiment.json", self.document)

    def _load(self) -> list[Trial]:
        found: list[tuple[int, Trial]] = []
        for entry in self.document["tests"]:
            found += _read_trials(self.directory / entry["directory"] / "results.jsonl")
        found.sort(key=lambda each: each[0])
        return [trial for _, trial in found]

    def _place(self, name: str, load: float) -> Path:
        """The directory of a load; it stands in experiment.json before anything is in it."""
        tests = self.document["tests"]
        known = next((test["directory"] for test in tests if test["name"] == name), None)
        if known is None:
            known = directory_name(name, [test["directory"] for test in tests])
            entry = {"name": name, "directory": known, "role": "test", "workers": 1}
            tests.append(entry | {"parameters": {"load": f"{load:.6g}"}})
            self.save()
        return self.directory / known

    def _measurement(self, name: str, number: int, trial: Trial) -> Measurement:
        start, start_ns = self._since
        kept = trial.of_server and trial.ended != "died"
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
            exit_status=1 if trial.ended == "died" else 0,
            signal=None,
            timed_out=False,
            cancelled=False,
            error=None,
            kept=kept,
            why=None if kept else "failed" if trial.of_server else "generator",
            metrics=_metrics(self.task.goal, trial),
            notes=[trial.note] if trial.note else None,
        )


@contextmanager
def keeping(
    directory: str | os.PathLike[str], sought: Sought, command_line: Sequence[str] = ()
) -> Iterator[Kept]:
    """A directory to keep a search in, alone: a new one, or one that holds the same search and is gone on with.

    However it ends is noted in experiment.json, unless the answer has been (`Kept.end`).

    Raises:
        InputError: it holds another search, or something else; MachineRefuses: it cannot be written to, or somebody
            else writes there.
    """
    path = Path(directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(path, error) from error
    with sole_writer(path):
        kept = _opened(path, sought, command_line)
        _sit(kept)
        try:
            yield kept
        except BaseException as error:
            kept.end(str(error) or type(error).__name__)
            raise


def _opened(path: Path, sought: Sought, command_line: Sequence[str]) -> Kept:
    if not (path / "experiment.json").exists():
        document = new_document(sought.name, VERB, command_line, sought.plan(), _digest(sought), (), METRICS)
        replace_json(path / "experiment.json", document)
        return Kept(path)
    for entry in read_experiment(path)["tests"]:
        drop_torn_trial(path / entry["directory"] / "results.jsonl")
    kept = Kept(path)
    if kept.trials() and (how := _differs(kept.sought, sought)) is not None:
        raise InputError(f"{path}: holds another search ({how}); name another directory with -o")
    kept.sought = sought
    kept.document |= {"name": sought.name, "plan": sought.plan(), "digest": _digest(sought)}
    return kept


def _sit(kept: Kept) -> None:
    sittings = kept.document["sittings"]
    sittings.append(
        {
            "sitting": len(sittings) + 1,
            "boot_id": boot_id(),
            "host": os.uname().nodename,
            "start": _now(),
            "end": None,
            "how_ended": None,
            "torn": [],
            "machine": snapshot.take() if sittings else None,
        }
    )
    kept.save()


def _differs(then: Sought, now: Sought) -> str | None:
    """What is asked for otherwise, in words; None where nothing is."""
    for name in asdict(now.task):
        a, b = getattr(then.task, name), getattr(now.task, name)
        if a != b and name not in MAY_CHANGE:
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
    """Of a harness: what it says, whatever its blanks and comments."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return text


def _digest(sought: Sought) -> str:
    plan = json.dumps(sought.plan(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(plan.encode()).hexdigest()


def _sought(document: Mapping[str, Any], path: Path) -> Sought:
    plan = document["plan"]
    if plan.get("kind") != KIND:
        raise InputError(f"{path}: holds results of etude {document.get('verb', '…')}, and no search")
    try:
        task = dict(plan["task"])
        task["goal"] = Goal(tuple(Criterion(**each) for each in task["goal"]["criteria"]))
        task["seed_shapes"] = tuple((name, weight) for name, weight in task.get("seed_shapes", ()))
        for name in ("lowest", "highest"):
            task[name] = float(task[name])
        return Sought(plan["name"], Task(**task), plan["policy"], plan["harness"], dict(plan["factors"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}/experiment.json: its plan cannot be read ({error}); was it edited?"
        ) from None


def _read_trials(path: Path) -> list[tuple[int, Trial]]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]  # what follows the last end of line was cut short
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    found = []
    for number, text in enumerate(lines, 1):
        try:
            line = orjson.loads(text)
            check_measurement(line)
            found.append((int(line["trial"]), from_line(line)))
        except (ValueError, KeyError, TypeError, AttributeError, BadTrial) as error:
            raise InputError(f"{path}:{number}: no trial of a search: {error}; was it edited?") from None
    return found


def _metrics(goal: Goal, trial: Trial) -> dict[str, Any]:
    ran = trial.ran_s
    offered, completed = (sum(getattr(w, name) for w in trial.windows) for name in ("offered", "completed"))
    answered = sum(w.completed for w in trial.windows if w.mean_s is not None)
    total = sum(w.completed * w.mean_s for w in trial.windows if w.mean_s is not None)
    read = reading(goal, trial)
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


def _append(path: Path, text: str) -> None:
    """One write, on disk when it returns: all of it, or none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            data, end = text.encode("utf-8", "replace"), os.fstat(file).st_size
            if os.write(file, data) != len(data):
                os.ftruncate(file, end)
                raise OSError(28, os.strerror(28))
            os.fdatasync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise refused(path, error) from error


def _finite_all(value: Any) -> Any:
    """Plain data with numbers that JSON has."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {name: _finite_all(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_all(each) for each in value]
    return value


def _instant() -> tuple[str, int]:
    return _now(), time.monotonic_ns()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
