"""The Python face: the same experiments as on the command line, as functions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from etude.experiment.ask import make_plan
from etude.experiment.plan import Plan
from etude.experiment.run import Outcome, run
from etude.experiment.test import Test
from etude.report.verdict import Verdict, verdict

__all__ = ["Outcome", "Plan", "Test", "bench", "make_plan", "run"]


def bench(
    commands: Sequence[str | Test], *, directory: str | os.PathLike[str] | None = None, **options: Any
) -> Verdict:
    """Measure commands, interleaved if there are several, until their means or ratios are known.

    `options` as `etude.experiment.ask.make_plan`.

    Raises:
        etude.errors.EtudeError: as its classes say; what was measured is on disk.
    """
    return verdict(run(make_plan(commands, **options), directory, verb="bench").results)
