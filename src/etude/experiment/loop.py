"""The trial loop: blocks of trials until the stop rule is met. Every step leaves its results on disk."""

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
from etude.experiment.remote_engine import node_session_of
from etude.experiment.test import Test, shell_words
from etude.experiment.trial import TrialPosition, needs_nothing_between, repeat_trials, run_trial
from etude.machine.cool.methods import REBOOTS
from etude.results.model import CALIBRATION, FIRST_RUN, signal_name

if TYPE_CHECKING:
    from etude.stats.means import Kind
    from etude.stats.stopping import Decision, SamplesSoFar

GIVE_UP_FACTOR = 2
"""Blocks, as a multiple of the maximum trials, after which a metric that some trials lack is given up."""
INNER_TRIAL_S = 0.05
"""Minimum duration of a trial with `--inner auto`, s: thousands of times the cost of one clock reading or one wake-up,
as hbench:OS sizes its loops."""
BATCH_S = 0.5
"""Maximum duration of a batch of trials within the engine, s: their results are not visible before its end."""
EARLY_AA_PAIRS = 5
"""Number of early A/A pairs: enough to know the A/A noise (`stats.ratio.FEWEST_FOR_NOISE_FLOOR`)."""


def shell_test(shell: str) -> Test:
    """The empty shell, whose start time is subtracted from commands that need a shell."""
    return Test(f"{shell} -c :", (*shell_words(shell), "-c", ":"), role="shell")


def aa_tests(plan: Plan) -> tuple[Test, ...]:
    """The baseline under another name, for A/A pairs; a duet needs both sides of that pair."""
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
    return (*aa_tests(plan), *([shell_test(plan.shell)] if plan.shell else []))


def run_groups(bench: Bench) -> list[Decision]:
    """Run every group of tests until its stop rule ends.

    Returns:
        The rule's final decision on each group.

    Raises:
        Interrupted: a signal came; clean-up has run and what was measured is on disk.
        CommandFailed, MachineRefuses, UsageError: same as in trial.py; likewise.
    """
    return [_run_group(bench, group) for group in groups(bench.plan.schedule, bench.plan.tests)]


def _run_group(bench: Bench, tests: tuple[Test, ...]) -> Decision:
    _raise_if_interrupted(bench)
    bench.notify("group", *tests, done=bench.plan.rule.minimum)
    with ExitStack() as undo:  # each clean-up runs, even if another fails
        for test in tests:
            undo.callback(end_hooks, bench, test)
            run_hook(bench, test, "setup")
            _raise_if_interrupted(bench)
        for twin in aa_tests(bench.plan):
            undo.callback(end_hooks, bench, twin)
        if (decision := stop_decision(bench.plan, bench.progress, tests)) is not None:
            bench.notify("decision", *tests, detail=decision.why)
            return decision
        _warm_up(bench, tests)
        return _run_blocks(bench, tests)


def stop_decision(plan: Plan, progress: Progress, tests: tuple[Test, ...]) -> Decision | None:
    """The stop rule's final decision on tests that share blocks; None if more trials are needed. Raises UsageError: it
    cannot judge the primary metric."""
    names = [test.name for test in tests]
    blocks = progress.kept(names[0])
    if not _is_due(plan, progress, names, blocks, plan.rule.next_look(_fewest(plan, progress, names))):
        return None
    if _misses_a_trial(plan, progress, tests, blocks):
        return None
    decision = _decide(plan, progress, tests)
    return decision if decision.enough or _is_lacking(plan, progress, names, blocks) else None


def _misses_a_trial(plan: Plan, progress: Progress, tests: tuple[Test, ...], blocks: int) -> bool:
    """True if one of the first `blocks` blocks is incomplete."""
    return not all(
        progress.has(test.name, block)
        for block in range(1, blocks + 1)
        for members in _block(plan, tests, block)
        for test in members
    )


def _warm_up(bench: Bench, tests: tuple[Test, ...]) -> None:
    """Make the warm-up runs of each test in this session: recorded, output captured, excluded."""
    if any(test.cool in REBOOTS and bench.progress.trials(test.name) for test in tests):
        return  # done in the session before: here it would fill the caches that the boot has left empty
    shell = [shell_test(bench.plan.shell)] if bench.plan.shell else []
    order = block_order([*tests, *shell], 0, bench.plan.seed)
    for number in range(bench.plan.warmup):
        for place, test in enumerate(order):
            bench.notify("set-aside", test)
            run_trial(bench, [test], TrialPosition(0, place, FIRST_RUN))
            _raise_if_interrupted(bench)
            if test.role == "test" and number == 0:
                _check_primary(bench, test)
            if number == bench.plan.warmup - 1:
                bench.inner[test.name] = _inner(bench, test)
    for twin in aa_tests(bench.plan):
        bench.inner[twin.name] = bench.inner[tests[0].name]


def _check_primary(bench: Bench, test: Test) -> None:
    """Refuse a primary metric that the first run does not have: no rule could ever be met. Raises UsageError: there is
    none of that name; MachineRefuses: it cannot be measured here."""
    metrics = bench.progress.trials(test.name)[-1].first.metrics
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
    """Launches per trial: configured, or the same as in earlier sessions, or enough for the clock's resolution."""
    if test.inner != "auto":
        return int(test.inner)
    kept = [trial for trial in bench.progress.trials(test.name) if trial.kept]
    if kept:
        return kept[-1].first.inner
    run_trial(bench, [test], TrialPosition(0, 0, CALIBRATION))
    _raise_if_interrupted(bench)
    elapsed = bench.progress.trials(test.name)[-1].value("elapsed") or INNER_TRIAL_S
    return max(1, math.ceil(INNER_TRIAL_S / elapsed))


def _run_blocks(bench: Bench, tests: tuple[Test, ...]) -> Decision:
    """Run blocks until the stop rule is met; it is evaluated at its looks and at its limits."""
    plan, progress, rule, names = bench.plan, bench.progress, bench.plan.rule, [test.name for test in tests]
    within_engine = _can_repeat(bench, tests)
    look = rule.next_look(_fewest(plan, progress, names))
    block, begun = 0, progress.kept(names[0])
    while True:
        missing = look - _fewest(plan, progress, names)
        if within_engine and missing > 1 and block == progress.kept(names[0]):
            left_s = rule.budget_s - progress.spent_s(names)
            block += repeat_trials(bench, tests[0], block + 1, missing, min(BATCH_S, left_s))
            _raise_if_interrupted(bench)
        else:
            block += 1
            _run_block(bench, tests, block)
        if block >= begun and _is_due(plan, progress, names, block, look):
            decision = _decide(plan, progress, tests)
            bench.notify("decision", *tests, detail=decision.why)
            if decision.enough or _is_lacking(plan, progress, names, block):
                return decision
            look = rule.next_look(_fewest(plan, progress, names) + 1)


def _is_due(plan: Plan, progress: Progress, names: Sequence[str], blocks: int, look: int) -> bool:
    """True if the stop rule is to be evaluated after this many blocks: at its look, or if a limit is reached."""
    count, rule = _fewest(plan, progress, names), plan.rule
    ends = blocks >= rule.minimum and rule.ends(count, progress.spent_s(names))
    return count >= look or ends or _is_lacking(plan, progress, names, blocks)


def _is_lacking(plan: Plan, progress: Progress, names: Sequence[str], blocks: int) -> bool:
    """True if too few of the trials have the primary metric, so that no more are made."""
    return _fewest(plan, progress, names) < plan.rule.maximum <= blocks / GIVE_UP_FACTOR


def _can_repeat(bench: Bench, tests: tuple[Test, ...]) -> bool:
    """True if trials can run back to back within the engine: one local test, nothing to do in between."""
    here = node_session_of(bench.engine) is None
    return here and len(tests) == 1 and not bench.plan.shell and needs_nothing_between(bench.plan, tests[0])


def _run_block(bench: Bench, tests: tuple[Test, ...], block: int) -> None:
    for order, members in enumerate(_block(bench.plan, tests, block)):
        if not all(bench.progress.has(test.name, block) for test in members):
            run_trial(bench, members, TrialPosition(block, order))
            _raise_if_interrupted(bench)


def _fewest(plan: Plan, progress: Progress, names: Sequence[str]) -> int:
    """Number of included trials with the primary metric, of the test that has the fewest."""
    return min(progress.count(name, plan.primary) for name in names)


def _block(plan: Plan, tests: tuple[Test, ...], block: int) -> list[tuple[Test, ...]]:
    """The trials of one block in order; each is one test's, or for a duet those of all parties at once."""
    pair = aa_tests(plan) if _has_aa_pair(plan, block) else ()
    shell = (shell_test(plan.shell),) if plan.shell else ()
    if plan.schedule == DUET:
        return [members for members in (tests, pair, shell) if members]
    return [(test,) for test in block_order([*tests, *pair, *shell], block, plan.seed)]


def _has_aa_pair(plan: Plan, block: int) -> bool:
    """True every `again_every` blocks; twice as often until there are enough A/A pairs to know the A/A noise."""
    if not plan.again_every:
        return False
    early = max(1, plan.again_every // 2)
    return block % plan.again_every == 0 or (block % early == 0 and block <= EARLY_AA_PAIRS * early)


def _decide(plan: Plan, progress: Progress, tests: tuple[Test, ...]) -> Decision:
    return decide_on_samples(plan, lambda: _seen(plan, progress, tests))


def decide_on_samples(plan: Plan, seen: Callable[[], SamplesSoFar]) -> Decision:
    """The stop rule's decision on these samples. Raises UsageError: it cannot judge the primary metric: values are
    missing, or have no ratio."""
    try:
        return plan.rule.make().decide(seen())
    except ValueError as error:
        advice = (
            "leave out --shell, whose start it hardly exceeds" if plan.shell else "choose another --primary"
        )
        raise UsageError(f"metric {plan.primary}: cannot be judged: {error}; {advice}") from None


def _seen(plan: Plan, progress: Progress, tests: tuple[Test, ...]) -> SamplesSoFar:
    import numpy as np

    from etude.stats.stopping import SamplesSoFar

    names = [test.name for test in tests]
    primary = plan.primary
    if plan.rule.kind == "ratio-precision":
        samples = progress.paired(names, primary)
    else:
        samples = tuple(progress.sample(name, primary) for name in names)
    shell = _shell_cost(plan, progress)
    values = tuple(np.asarray(sample) - shell for sample in samples)
    kind = cast("Kind", progress.kind(primary))
    return SamplesSoFar(values, progress.spent_s(names), kind=kind, sessions=progress.sessions(names))


def _shell_cost(plan: Plan, progress: Progress) -> float:
    """Mean start time of the empty shell in seconds; 0 if none is used or the metric is not a time."""
    if not plan.shell or plan.primary != "elapsed":
        return 0.0
    starts = progress.sample(shell_test(plan.shell).name, "elapsed")
    return sum(starts) / len(starts)


def _raise_if_interrupted(bench: Bench) -> None:
    if bench.watch.signal is not None:
        raise Interrupted(bench.watch.signal, f"ended by {signal_name(bench.watch.signal)}")
