"""A metric of a test as the response: of a command, or of a script's test, repeated until its mean is known."""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from etude.errors import CommandFailed, InputError
from etude.experiment.ask import make_plan
from etude.experiment.run import resume, run
from etude.experiment.test import MetricPattern, Test
from etude.results.model import Measurement
from etude.results.reader import Results, load_results
from etude.stats.describe import describe
from etude.workbench.harnesses.spec import fill
from etude.workbench.surfaces.response import Asked, Tell
from etude.workbench.surfaces.samples import Sample
from etude.workbench.surfaces.spec import MetricOf

EXPERIMENT = "measured"
"""Of a cell's directory: where its experiment is kept."""
CONFIDENCE = 0.95
BUDGET_S = 30.0
"""Seconds of measuring, where no other is given."""


@dataclass(frozen=True)
class Metric:
    """A response (`response.Response`)."""

    asked: MetricOf
    base: Path
    """Where relative paths begin."""

    @property
    def name(self) -> str:
        return self.asked.metric

    @property
    def unit(self) -> str:
        return self.asked.unit

    @property
    def better(self) -> Literal["higher", "lower"]:
        return self.asked.better

    @property
    def text(self) -> str:
        """The command, or the whole script."""
        if self.asked.command:
            return f"{self.asked.setup}\n{self.asked.command}\n{self.asked.pattern}"
        return self._script().read_text(encoding="utf-8", errors="replace")

    def learn(self, place: Path) -> None:
        """One cell's measurements teach nothing of how to measure another."""

    def measure(self, asked: Asked, tell: Tell) -> Sample:
        """One experiment. Raises EtudeError: as it does; what was measured is on disk."""
        place = asked.place / EXPERIMENT
        results = (
            self._of_command(asked, place, tell) if self.asked.command else self._of_script(asked, place)
        )
        names = [self.asked.test] if self.asked.test else list(results.names())
        if len(names) != 1 or names[0] not in results.measurements:
            found = ", ".join(results.names())
            raise InputError(
                f"{place}: expected one test{f' {names[0]!r}' if names else ''}; there is {found or 'none'}"
            )
        return self._sample(asked, results.measurements[names[0]])

    def _of_command(self, asked: Asked, place: Path, tell: Tell) -> Results:
        given = {**asked.settings, **asked.setting.values}
        quoted = {name: shlex.quote(text) for name, text in given.items()}
        words = (*asked.setting.prefix, "/bin/sh", "-c", fill(self.asked.command, quoted))
        pattern = (
            (MetricPattern(self.name, self.asked.pattern, self.unit or "1"),) if self.asked.pattern else ()
        )
        setup = fill(self.asked.setup, quoted) or None
        test = Test(
            "command",
            words,
            setup=setup,
            metrics=pattern,
            timeout_s=asked.left_s,
            directory=str(self.base.resolve()),
        )

        def observe(event: object, ledger: object) -> None:
            tell(type(event).__name__.lower())

        if (place / "experiment.json").exists():
            return resume(place, observe=observe).results
        budget_s = asked.left_s or BUDGET_S
        plan = make_plan([test], name="cell", precision=self.asked.precision, budget_s=budget_s)
        return run(plan, place, observe=observe).results

    def _of_script(self, asked: Asked, place: Path) -> Results:
        """By `etude run` in a process of its own, which its resources confine as a whole."""
        given: Mapping[str, str] = {**asked.settings, **asked.setting.values}
        script = str(self._script().resolve())
        todo = ["--resume", str(place)]
        if not (place / "experiment.json").exists():
            todo = [script, *(f"{name}={text}" for name, text in given.items()), "-o", str(place)]
        words = [*asked.setting.prefix, sys.executable, "-m", "etude", "run", *todo]
        try:
            ended = subprocess.run(
                words,
                capture_output=True,
                text=True,
                errors="replace",
                cwd=self.base,
                timeout=asked.left_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"{script}: not done within {asked.left_s:.0f} s") from None
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise CommandFailed(f"{script}: ended with {ended.returncode}: {last}")
        return load_results(place)

    def _script(self) -> Path:
        return self.base / self.asked.script

    def _sample(self, asked: Asked, measurements: tuple[Measurement, ...]) -> Sample:
        values = [
            value
            for each in measurements
            if each.kept and (value := each.metrics.get(self.name, [None])[0]) is not None
        ]
        cost_s = sum(each.metrics.get("elapsed", [0.0])[0] or 0.0 for each in measurements)
        if not values:
            why = f"no trial has {self.name}"
            return Sample(
                asked.visit.cell,
                "failed",
                None,
                0.0,
                math.inf,
                CONFIDENCE,
                cost_s,
                len(measurements),
                False,
                why,
            )
        found = describe(values, "rate" if self.better == "higher" else "cost", confidence=CONFIDENCE)
        interval = found.mean_interval
        low, high = (interval.low, interval.high) if interval is not None else (0.0, math.inf)
        return Sample(
            asked.visit.cell, "measured", found.mean, max(low, 0.0), high, CONFIDENCE, cost_s, len(values)
        )
