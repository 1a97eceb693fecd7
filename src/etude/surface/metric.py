"""Response that is a metric of a command, or of a script's test, repeated until its mean is known."""

from __future__ import annotations

import itertools
import math
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from etude.errors import CommandFailed, InputError, UsageError
from etude.experiment.bench import Event
from etude.experiment.plan import make_plan
from etude.experiment.progress import Progress
from etude.experiment.remote_engine import require_local_engine
from etude.experiment.run import resume, run
from etude.experiment.session import EngineMaker
from etude.experiment.test import MetricPattern, Test
from etude.experiment.trial import OOM_KILLED
from etude.machine.resources.cgroups import oom_kills
from etude.peak.harnesses.command import fill
from etude.results.model import Measurement
from etude.results.reader import load_results, read_experiment
from etude.results.results import Results
from etude.results.trial_join import stored_unit
from etude.stats.describe import describe
from etude.surface.response import ConfigurationRequest, Response, Tell, failed_sample
from etude.surface.samples import Sample
from etude.surface.spec import MetricOf

EXPERIMENT = "measured"
"""Subdirectory of a configuration's experiment."""
CONFIDENCE = 0.95
BUDGET_S = 30.0
"""Default measuring time, s."""
LEAST_S = 1.0


@dataclass(frozen=True)
class Metric(Response):
    """A response (`response.Response`)."""

    asked: MetricOf
    base: Path
    """Base of relative paths."""
    nodes: int = 1
    make_engine: EngineMaker | None = None
    """Factory of engines for `experiment.run.run`; a script has its own."""
    clock: Callable[[], float] = time.monotonic

    @property
    def name(self) -> str:
        return self.asked.metric

    @property
    def unit(self) -> str:
        """Unit of the values as they are stored: that of `unit` without its prefix."""
        return stored_unit(self.asked.unit).base

    @property
    def better(self) -> Literal["higher", "lower"]:
        return self.asked.better

    @property
    def text(self) -> str:
        """The command, or the whole script."""
        if self.asked.command:
            return f"{self.asked.setup}\n{self.asked.command}\n{self.asked.pattern}"
        try:
            return f"{self.asked.test}\n{self._script().read_text(encoding='utf-8', errors='replace')}"
        except OSError as error:
            raise InputError(f"{self._script()}: cannot be read: {error.strerror}") from None

    def measure(self, asked: ConfigurationRequest, tell: Tell) -> Sample:
        """Run one experiment. Raises EtudeError from it; measurements are on disk by then."""
        place = asked.place / EXPERIMENT
        killed_before = oom_kills(asked.setting.groups)
        results = (
            self._of_command(asked, place, tell) if self.asked.command else self._of_script(asked, place)
        )
        names = [self.asked.test] if self.asked.test else list(results.names())
        if len(names) != 1 or names[0] not in results.measurements:
            found = ", ".join(results.names())
            raise InputError(
                f"{place}: expected one test{f' {names[0]!r}' if names else ''}; there is {found or 'none'}"
            )
        sample = self._sample(asked, results.measurements[names[0]])
        killed = oom_kills(asked.setting.groups) - killed_before
        if not killed or self.asked.command:
            return sample
        # The script's trials that they belong to are unknown.
        return replace(sample, kept=False, why=f"the OOM killer ended processes of the script ({killed})")

    def _of_command(self, asked: ConfigurationRequest, place: Path, tell: Tell) -> Results:
        given = {**asked.settings, **asked.setting.values}
        quoted = {name: shlex.quote(text) for name, text in given.items()}
        if asked.setting.prefix:
            require_local_engine("a surface with resources")
        words = (*asked.setting.prefix, "/bin/sh", "-c", fill(self.asked.command, quoted))
        pattern = (
            (MetricPattern(self.name, self.asked.pattern, self.asked.unit or "1"),)
            if self.asked.pattern
            else ()
        )
        setup = fill(self.asked.setup, quoted) or None
        left_s = _left(asked)
        test = Test(
            "command",
            words,
            setup=setup,
            metrics=pattern,
            timeout_s=left_s,
            directory=str(self.base.resolve()),
            groups=asked.setting.groups,
        )
        ends = self.clock() + (math.inf if left_s is None else left_s)

        def observe(event: Event, ledger: Progress) -> None:
            trials = len(ledger.trials(test.name))
            tell(f"{trials} trial{'' if trials == 1 else 's'}")
            if event.what == "trial" and self.clock() >= ends:
                raise _TimeIsUp

        here = (list(words), setup)
        _leave_other_resources(
            place, lambda plan: all((known["command"], known["setup"]) == here for known in plan["tests"])
        )
        with suppress(_TimeIsUp), _of_a_configuration():
            if (place / "experiment.json").exists():
                return resume(place, observe=observe, make_engine=self.make_engine).results
            budget_s = BUDGET_S if left_s is None else left_s
            plan = make_plan(
                [test], name="cell", precision=self.asked.precision, budget_s=budget_s, least_s=0.0
            )
            return run(plan, place, observe=observe, make_engine=self.make_engine).results
        return load_results(place)

    def _of_script(self, asked: ConfigurationRequest, place: Path) -> Results:
        """Run the script by `etude run` in a separate process, which its resources confine as a whole."""
        given: Mapping[str, str] = {**asked.settings, **asked.setting.values}
        script, there = str(self._script().resolve()), str(place.resolve())
        _leave_other_resources(
            place, lambda plan: asked.setting.values.items() <= dict(plan["assignments"]).items()
        )
        todo = ["--resume", there]
        if not (place / "experiment.json").exists():
            todo = [script, *(f"{name}={text}" for name, text in given.items()), "-o", there]
        words = [*asked.setting.prefix, sys.executable, "-P", "-m", "etude.cli.main", "run", *todo]
        code, said = _ended(words, self.base, _left(asked))
        if code is None and not (place / "experiment.json").exists():
            raise CommandFailed(f"{script}: nothing was measured within {_left(asked):.0f} s")
        if code:
            rows = said.strip().splitlines() or ["it printed nothing"]
            last = next((row for row in rows if row.startswith("etude: ")), rows[-1]).removeprefix("etude: ")
            raise CommandFailed(f"{script}: ended with {code}: {last}")
        return load_results(place)

    def _script(self) -> Path:
        return self.base / self.asked.script

    def _sample(self, asked: ConfigurationRequest, measurements: tuple[Measurement, ...]) -> Sample:
        values = [
            value
            for each in measurements
            if each.kept and (value := each.metrics.get(self.name, [None])[0]) is not None
        ]
        killed = sum(each.why == OOM_KILLED for each in measurements if each.worker == 0)
        lost = f"in {killed} of {len(measurements)} trials the OOM killer ended processes" if killed else ""
        cost_s = sum(each.metrics.get("elapsed", [0.0])[0] or 0.0 for each in measurements)
        if not values:
            late = any(each.timed_out for each in measurements)
            why = f"not done within {_left(asked) or 0:.0f} s" if late else f"no trial has {self.name}"
            return failed_sample(asked.visit.cell, lost or why, cost_s, len(measurements))
        found = describe(values, "rate" if self.better == "higher" else "cost", confidence=CONFIDENCE)
        if found.mean is None or not found.mean > 0 or min(values) < 0:
            why = f"{self.name} is not above 0, and a surface is of ratios"
            return failed_sample(asked.visit.cell, why, cost_s, len(values))
        interval = found.mean_interval
        low, high = (interval.low, interval.high) if interval is not None else (0.0, math.inf)
        return Sample(
            asked.visit.cell,
            "measured",
            found.mean,
            max(low, 0.0),
            high,
            CONFIDENCE,
            cost_s,
            len(values),
            why=lost,
        )


@contextmanager
def _of_a_configuration() -> Iterator[None]:
    """Turn errors of a command or its output into errors of this configuration only."""
    try:
        yield
    except (CommandFailed, UsageError) as error:
        raise CommandFailed(str(error).split("; if that is how it should end")[0]) from None


class _TimeIsUp(Exception):
    """The configuration's budget is spent; measurements are on disk."""


def _leave_other_resources(place: Path, fits: Callable[[Mapping[str, Any]], bool]) -> None:
    """Move an interrupted experiment aside that names released resources: volumes and groups are created for each
    holder, so its trials ran in other ones than those held now. Raises InputError: its plan cannot be read."""
    if not (place / "experiment.json").exists():
        return
    document = read_experiment(place)
    complete = document["sittings"] and document["sittings"][-1].get("how_ended") == "complete"
    try:
        if complete or fits(document["plan"]):
            return
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{place}/experiment.json: its plan cannot be read ({error}); was it edited?"
        ) from None
    names = (place.with_name(f"{place.name}-interrupted-{number}") for number in itertools.count(1))
    place.rename(next(name for name in names if not name.exists()))


def _left(asked: ConfigurationRequest) -> float | None:
    """Remaining time for a configuration, s; None if not bounded."""
    left_s = min(math.inf if asked.left_s is None else asked.left_s, asked.until_s)
    return None if math.isinf(left_s) else max(left_s, LEAST_S)


def _ended(words: list[str], directory: Path, left_s: float | None) -> tuple[int | None, str]:
    """Exit code and standard error of a program; the code is None if it was interrupted after `left_s`. The program and
    its children have ended at return, also on an exception."""
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", cwd=directory
    ) as program:
        try:
            _, said = program.communicate(timeout=left_s)
            return program.returncode, said
        except subprocess.TimeoutExpired:
            program.send_signal(signal.SIGINT)
            _, said = program.communicate()
            return None, said
        except BaseException:
            program.terminate()
            program.communicate()
            raise
