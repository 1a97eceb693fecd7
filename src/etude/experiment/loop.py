"""The trial loop: blocks of trials until the stop rule says enough. Every step leaves its results on disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from etude.errors import Interrupted, MachineRefuses, UsageError
from etude.experiment.bench import Bench
from etude.experiment.hooks import end_hooks, run_hook
from etude.experiment.plan import DUET, Plan, block_order, groups
from etude.experiment.progress import Progress
from etude.experiment.remote_engine import there_of
from etude.experiment.test import Test, shell_words
from etude.experiment.trial import TrialPosition, needs_nothing_between, repeat_trials, run_trial
from etude.machine.cool.methods import REBOOTS
from etude.results.model import CALIBRATION, FIRST_RUN, signal_name

if TYPE_CHECKING:
    from etude.stats.means import Kind
    from etude.stats.stopping import Decision, SamplesSoFar

GIVE_UP = 2
"""After this many times the most trials allowed, a metric that some trials lack will not be known."""
INNER_TRIAL_S = 0.05
"""`--inner auto`: a trial lasts at least this long, thousands of times what one reading of the clock or one wake-up
costs, as hbench:OS sizes its loops."""
TOGETHER_S = 0.5
"""Trials are made together for so long: nothing is seen of them before they end."""
EARLY_AGAIN = 5
"""A/A pairs that are made early: from so many on their noise is known (`stats.compare.FEWEST_FOR_NOISE_FLOOR`)."""


def shell_test(shell: str) -> Test:
    """The empty shell, whose start is subtracted from commands that need one."""
    return Test(f"{shell} -c :", (*shell_words(shell), "-c", ":"), role="shell")


def twins(plan: Plan) -> tuple[Test, ...]:
    """The reference under another name, for running it against itself; a duet needs both sides of that pair."""
    if not (plan.compares and plan.again_every):
        return ()
    names = ("again", "again, beside") if plan.schedule == DUET else ("again",)
    first = plan.tests[0]
    return tuple(
        replace(first, name=f"{first.name} ({name})", role="again", setup=None, cleanup=None)
        for name in names
    )


def added_tests(plan: Plan) -> tuple[Test, ...]:
    """The tests that Étude adds to those of the plan."""
    return (*twins(plan), *([shell_test(plan.shell)] if plan.shell else []))


def run_groups(bench: Bench) -> list[Decision]:
    """Run every group of tests to its stop rule's end.

    Returns:
        The rule's last word on each group.

    Raises:
        Interrupted: a signal came; clean-up has run and what was measured is on disk.
        CommandFailed, MachineRefuses, UsageError: as in trial.py; likewise.
    """
    return [_run_group(bench, group) for group in groups(bench.plan.schedule, bench.plan.tests)]


def _run_group(bench: Bench, tests: tuple[Test, ...]) -> Decision:
    _heed(bench)
    bench.tell("group", *tests, done=bench.plan.rule.minimum)
    with ExitStack() as undo:  # each clean-up runs, whichever other fails
        for test in tests:
            undo.callback(end_hooks, bench, test)
            run_hook(bench, test, "setup")
            _heed(bench)
        for twin in twins(bench.plan):
            undo.callback(end_hooks, bench, twin)
        if (decision := stop_decision(bench.plan, bench.ledger, tests)) is not None:
            bench.tell("decision", *tests, detail=decision.why)
            return decision
        _set_aside(bench, tests)
        return _run_blocks(bench, tests)


def stop_decision(plan: Plan, ledger: Progress, tests: tuple[Test, ...]) -> Decision | None:
    """The stop rule's last word on tests that share blocks; None where trials are still to be made.

    Raises:
        UsageError: it cannot judge the primary metric.
    """
    names = [test.name for test in tests]
    blocks = ledger.kept(names[0])
    if not _is_due(plan, ledger, names, blocks, plan.rule.next_look(_fewest(plan, ledger, names))):
        return None
    if _misses_a_trial(plan, ledger, tests, blocks):
        return None
    decision = _decide(plan, ledger, tests)
    return decision if decision.enough or _is_lacking(plan, ledger, names, blocks) else None


def _misses_a_trial(plan: Plan, ledger: Progress, tests: tuple[Test, ...], blocks: int) -> bool:
    """Whether one of so many blocks is not whole."""
    return not all(
        ledger.has(test.name, block)
        for block in range(1, blocks + 1)
        for members in _block(plan, tests, block)
        for test in members
    )


def _set_aside(bench: Bench, tests: tuple[Test, ...]) -> None:
    """The warm-up runs of each test in this session: recorded, their output captured, excluded."""
    if any(test.cool in REBOOTS and bench.ledger.trials(test.name) for test in tests):
        return  # in the session before: here it would fill the caches that the boot has left empty
    shell = [shell_test(bench.plan.shell)] if bench.plan.shell else []
    order = block_order([*tests, *shell], 0, bench.plan.seed)
    for number in range(bench.plan.warmup):
        for place, test in enumerate(order):
            bench.tell("set-aside", test)
            run_trial(bench, [test], TrialPosition(0, place, FIRST_RUN))
            _heed(bench)
            if test.role == "test" and number == 0:
                _check_primary(bench, test)
            if number == bench.plan.warmup - 1:
                bench.inner[test.name] = _inner(bench, test)
    for twin in twins(bench.plan):
        bench.inner[twin.name] = bench.inner[tests[0].name]


def _check_primary(bench: Bench, test: Test) -> None:
    """Refuse a primary metric that the first run does not have: no rule could ever see enough of it.

    Raises:
        UsageError: there is none of that name; MachineRefuses: it cannot be measured here.
    """
    metrics = bench.ledger.trials(test.name)[-1].first.metrics
    primary = bench.plan.primary
    if primary not in metrics:
        raise UsageError(
            f"metric {primary!r}: {test.name!r} has none of that name; it has {', '.join(sorted(metrics))}"
        )
    if metrics[primary][0] is None:
        raise MachineRefuses(
            f"metric {primary} of {test.name!r}: {metrics[primary][2]}; choose another with --primary"
        )


def _inner(bench: Bench, test: Test) -> int:
    """Launches per trial: as asked, as in earlier sessions, or enough for the clock."""
    if test.inner != "auto":
        return int(test.inner)
    kept = [trial for trial in bench.ledger.trials(test.name) if trial.kept]
    if kept:
        return kept[-1].first.inner
    run_trial(bench, [test], TrialPosition(0, 0, CALIBRATION))
    _heed(bench)
    elapsed = bench.ledger.trials(test.name)[-1].value("elapsed") or INNER_TRIAL_S
    return max(1, math.ceil(INNER_TRIAL_S / elapsed))


def _run_blocks(bench: Bench, tests: tuple[Test, ...]) -> Decision:
    """Block after block until the stop rule, asked at its looks and at its limits, has enough."""
    plan, ledger, rule, names = bench.plan, bench.ledger, bench.plan.rule, [test.name for test in tests]
    within_engine = _can_repeat(bench, tests)
    look = rule.next_look(_fewest(plan, ledger, names))
    block, begun = 0, ledger.kept(names[0])
    while True:
        missing = look - _fewest(plan, ledger, names)
        if within_engine and missing > 1 and block == ledger.kept(names[0]):
            left_s = rule.budget_s - ledger.spent_s(names)
            block += repeat_trials(bench, tests[0], block + 1, missing, min(TOGETHER_S, left_s))
            _heed(bench)
        else:
            block += 1
            _run_block(bench, tests, block)
        if block >= begun and _is_due(plan, ledger, names, block, look):
            decision = _decide(plan, ledger, tests)
            bench.tell("decision", *tests, detail=decision.why)
            if decision.enough or _is_lacking(plan, ledger, names, block):
                return decision
            look = rule.next_look(_fewest(plan, ledger, names) + 1)


def _is_due(plan: Plan, ledger: Progress, names: Sequence[str], blocks: int, look: int) -> bool:
    """Whether the stop rule is to be asked after so many blocks: at its look, and where a limit is reached."""
    count, rule = _fewest(plan, ledger, names), plan.rule
    ends = blocks >= rule.minimum and rule.ends(count, ledger.spent_s(names))
    return count >= look or ends or _is_lacking(plan, ledger, names, blocks)


def _is_lacking(plan: Plan, ledger: Progress, names: Sequence[str], blocks: int) -> bool:
    """Whether so few of so many trials have the primary metric that it will not be known."""
    return _fewest(plan, ledger, names) < plan.rule.maximum <= blocks / GIVE_UP


def _can_repeat(bench: Bench, tests: tuple[Test, ...]) -> bool:
    """Whether trials can follow one another within the engine: of one test, here, with nothing in between."""
    here = there_of(bench.engine) is None
    return here and len(tests) == 1 and not bench.plan.shell and needs_nothing_between(bench.plan, tests[0])


def _run_block(bench: Bench, tests: tuple[Test, ...], block: int) -> None:
    """Make those trials of a block that are missing."""
    for order, members in enumerate(_block(bench.plan, tests, block)):
        if not all(bench.ledger.has(test.name, block) for test in members):
            run_trial(bench, members, TrialPosition(block, order))
            _heed(bench)


def _fewest(plan: Plan, ledger: Progress, names: Sequence[str]) -> int:
    """Kept trials with the primary metric, of the test that has the fewest."""
    return min(ledger.count(name, plan.primary) for name in names)


def _block(plan: Plan, tests: tuple[Test, ...], block: int) -> list[tuple[Test, ...]]:
    """The trials of one block in their order; each is one test's, or for a duet all parties' at once."""
    pair = twins(plan) if _runs_again(plan, block) else ()
    shell = (shell_test(plan.shell),) if plan.shell else ()
    if plan.schedule == DUET:
        return [members for members in (tests, pair, shell) if members]
    return [(test,) for test in block_order([*tests, *pair, *shell], block, plan.seed)]


def _runs_again(plan: Plan, block: int) -> bool:
    """Every `again_every` blocks; twice as often until there are as many A/A pairs as their noise is known from."""
    if not plan.again_every:
        return False
    early = max(1, plan.again_every // 2)
    return block % plan.again_every == 0 or (block % early == 0 and block <= EARLY_AGAIN * early)


def _decide(plan: Plan, ledger: Progress, tests: tuple[Test, ...]) -> Decision:
    return judged_metrics(plan, lambda: _seen(plan, ledger, tests))


def judged_metrics(plan: Plan, seen: Callable[[], SamplesSoFar]) -> Decision:
    """What the stop rule says of what was seen.

    Raises:
        UsageError: it cannot judge the primary metric: values are missing, or have no ratio.
    """
    try:
        return plan.rule.make().decide(seen())
    except ValueError as error:
        advice = (
            "leave out --shell, whose start it hardly exceeds" if plan.shell else "choose another --primary"
        )
        raise UsageError(f"metric {plan.primary}: cannot be judged: {error}; {advice}") from None


def _seen(plan: Plan, ledger: Progress, tests: tuple[Test, ...]) -> SamplesSoFar:
    import numpy as np

    from etude.stats.stopping import SamplesSoFar

    names = [test.name for test in tests]
    primary = plan.primary
    if plan.rule.kind == "ratio-precision":
        samples = ledger.paired(names, primary)
    else:
        samples = tuple(ledger.sample(name, primary) for name in names)
    shell = _shell_cost(plan, ledger)
    values = tuple(np.asarray(sample) - shell for sample in samples)
    kind = cast("Kind", ledger.kind(primary))
    return SamplesSoFar(values, ledger.spent_s(names), kind=kind, sessions=ledger.sessions(names))


def _shell_cost(plan: Plan, ledger: Progress) -> float:
    """Mean start of the empty shell in seconds; 0 where none is used or the metric is not a time."""
    if not plan.shell or plan.primary != "elapsed":
        return 0.0
    starts = ledger.sample(shell_test(plan.shell).name, "elapsed")
    return sum(starts) / len(starts)


def _heed(bench: Bench) -> None:
    """Stop here when a signal has come.

    Raises:
        Interrupted: it has.
    """
    if bench.watch.signal is not None:
        raise Interrupted(bench.watch.signal, f"ended by {signal_name(bench.watch.signal)}")
