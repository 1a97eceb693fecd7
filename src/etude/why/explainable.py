"""Tests of a plan that can be explained; others are refused in one line before anything is measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from etude.errors import UsageError
from etude.experiment.plan import Plan
from etude.experiment.remote_engine import VARIABLE
from etude.experiment.test import Test
from etude.machine.cool.methods import REBOOTS


def explainable(plan: Plan, names: Sequence[str], source: str, *, count: int = 2) -> tuple[Test, ...]:
    """The tests of these names (default: the first ones), to be run once a trial.

    source: what the plan is of, for errors. count: 2 for a difference, 1 for the slow trials of one test.

    Raises:
        UsageError: there are no such tests, or they cannot be run under instruments.
    """
    known = {test.name: test for test in plan.tests}
    if len(known) < count:
        raise UsageError(f"{source}: has one test: expected two, whose difference is explained")
    if count == 1 and not names and len(known) > 1:
        raise UsageError(f"{source}: has {len(known)} tests: name one of {', '.join(known)}")
    names = names or [test.name for test in plan.tests[:count]]
    for name in names:
        if name not in known:
            raise UsageError(f"{source}: no test {name!r}: expected {', '.join(known)}")
    if len(names) != count:
        raise UsageError(f"{source}: {len(names)} tests: expected {'two' if count == 2 else 'one'}")
    if len(set(names)) < count:
        raise UsageError(f"{names[0]!r} twice: expected two tests")
    if node := os.environ.get(VARIABLE):
        raise UsageError(f"{VARIABLE}={node}: instruments run on this machine only; unset it")
    for test in (known[name] for name in names):
        if test.workers > 1:
            raise UsageError(f"{test.name}: has {test.workers} workers: expected one")
        if test.cool in REBOOTS:
            raise UsageError(f"{test.name}: a restart before each trial is not repeated under instruments")
    return tuple(replace(known[name], inner=1) for name in names)
