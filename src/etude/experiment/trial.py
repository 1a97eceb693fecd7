"""One trial: prepare, exec, conclude. Its lines are on disk before the next trial starts."""

from __future__ import annotations

import os
import re
import threading
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etude.engine import Launch, Repeat, Worker
from etude.errors import CommandFailed, MachineRefuses, Restarting, UsageError
from etude.experiment.bench import Bench
from etude.experiment.hooks import run_hook
from etude.experiment.kernel_log import messages_by_trial, row_members
from etude.experiment.output_metric import (
    METRIC_BYTES,
    note_matches,
    printed_metric,
    printed_text,
)
from etude.experiment.plan import CHECK_EACH, DUET, Plan, disjoint_cpus
from etude.experiment.test import Test
from etude.machine.boot import record, restart
from etude.machine.cool.dataset import DataSet
from etude.machine.cool.methods import REBOOTS, Cooled, cool
from etude.machine.resources.cgroups import oom_kills
from etude.results.engine_reports import holds_report
from etude.results.model import Measurement, from_line, metric_kind
from etude.results.reader import read_measurements

_BUILTINS = """. : alias bg bind break builtin cd command compgen complete continue declare dirs disown eval exec exit
export fc fg getopts hash history jobs let local logout popd pushd read readonly return set shift shopt source suspend
times trap type typeset ulimit umask unalias unset wait"""
BUILTINS = frozenset(_BUILTINS.split())
"""Built-in commands of sh and bash, except those that are also programs, such as `echo`."""
_KEYWORDS = "[[ { ( ! case coproc do done elif else esac fi for function if in select then until while"
KEYWORDS = frozenset(_KEYWORDS.split())


def advice(command: Sequence[str], directory: str | None = None) -> str:
    """Advice if the first word of a command was not found in PATH."""
    word = command[0]
    if word in BUILTINS:
        return f"{word} is built into shells and no program; run it by one, with --shell"
    if word.startswith(("(", "{")) or word in KEYWORDS:
        return f"{word} is shell syntax; run it by a shell, with --shell"
    if f"BASH_FUNC_{word}%%" in os.environ:
        return f"{word} is a function that bash exported, and no program; run it by bash, with --shell=bash"
    if len(command) == 1 and any(map(str.isspace, word)):
        return "the quotes make one word of the whole line; leave out the inner ones"
    here = os.path.join(directory or ".", word)
    if "/" not in word and os.path.isfile(here):
        if os.access(here, os.X_OK):
            return f"there is one in this directory; type ./{word}"
        return (
            f"there is a file {word} in this directory, not executable; type chmod +x {word}, then ./{word}"
        )
    if "-c" in command[-2:-1]:  # a shell, most often that of --shell
        return "check its spelling, or give its path"
    return (
        "check its spelling, or give its path; an alias or function of your shell is no program: "
        "write its commands out, with --shell"
    )


CAPTURE_BYTES = 64 * 1024
TAIL_CHARACTERS = 4096
OOM_KILLED = "oom-killed"
"""Reason of exclusion of a trial in whose cgroup the OOM killer ended a process."""
MAX_OOM_KILLED = 3
"""Number of such trials, with no included one, that ends the experiment."""
NOT_FOUND = ": not found in PATH"
"""The engine's error for a program that was not found, after its name."""


@dataclass(frozen=True)
class TrialPosition:
    """Position of a trial: its block, its place in it, and the reason if it is excluded."""

    block: int
    order: int = 0
    set_aside: str | None = None


def run_trial(bench: Bench, members: Sequence[Test], slot: TrialPosition) -> None:
    """Make one trial of each member: of one test, or of all parties of a duet at once.

    Raises:
        CommandFailed: a command or a hook failed and the policy is to stop; the trial is on disk.
        MachineRefuses: the engine died, or results cannot be written.
        Restarting: the machine has to be restarted first.
    """
    _restart_first(bench, members[0], slot)
    with ExitStack() as undo:  # each conclude runs, even if another fails
        for test in members:
            undo.callback(run_hook, bench, test, "conclude")
            run_hook(bench, test, "prepare")
            if bench.watch.count:  # an interrupted prepare did not prepare
                return
        cache = _prepare_caches(bench, members, slot)
        bench.kernel.begin()
        killed_before = _oom_kills(members)
        rows = bench.engine.launch(_launch(bench, members, slot))
        rows = [rows[0] | bench.kernel.end(), *rows[1:]]
        killed = _oom_kills(members) - killed_before
        trials = [
            (test, _measurements(bench, test, slot, part, cache, killed))
            for test, part in _parts(bench, members, rows)
        ]
        trials = _whole(trials)
        for test, measurements in trials:
            _write(bench, test, measurements)
    if not bench.watch.count:
        for test, measurements in trials:
            _judge(bench, test, measurements)


def _restart_first(bench: Bench, test: Test, slot: TrialPosition) -> None:
    """Restart the machine if the trial needs a fresh boot and something has run in this one. Raises Restarting: resumes
    with this trial; MachineRefuses: it could not resume."""
    if test.cool in REBOOTS and slot.set_aside is None and bench.measured:
        directory = bench.writer.path(test.name).parent
        results = directory.parent
        list_data_set(test.cool, test.data, directory)
        restart_machine("", ["bench", "--resume", str(results)], results / "experiment.json", results)


LISTING = "dataset"
"""File beside a test's results: the names of the files of its data set."""


def data_set(paths: Sequence[str], directory: Path) -> DataSet | None:
    """The data set of a test whose results are in `directory`; None if it names no files."""
    return DataSet(tuple(map(os.path.abspath, paths)), directory / LISTING) if paths else None


def cool_trial(way: str, paths: Sequence[str], directory: Path, *, booted: bool, warms: bool) -> Cooled:
    """Prepare the caches before one trial. `warms`: for the warm-up run of `warm`; `booted`: the machine was restarted.
    Raises MachineRefuses: same as `cool`."""
    if warms:
        return Cooled(way, None, "this run warms the caches")
    if way in REBOOTS and not booted:
        return Cooled(way, None, "the machine was not restarted: this boot is the one before")
    return cool(way, data_set(paths, directory), booted=booted)


def list_data_set(way: str, paths: Sequence[str], directory: Path) -> None:
    """List the data set before a restart: listing it afterwards would warm the caches."""
    data = data_set(paths, directory)
    if way in REBOOTS and data is not None:
        with suppress(MachineRefuses):  # not mounted now: the list made after the last trial is still valid
            data.list()


def restart_machine(entry: str, words: Sequence[str], state: Path, results: Path) -> None:
    """Record how to resume after the boot; the handler of `Restarting` restarts the machine. Raises Restarting: always;
    or MachineRefuses: the machine could not resume."""
    restart.check(entry or None)
    record.register(list(words), state, results, entry=entry or None)
    raise Restarting(entry)


def _oom_kills(members: Sequence[Test]) -> int:
    return oom_kills({group for test in members for group in test.groups})


def _prepare_caches(bench: Bench, members: Sequence[Test], slot: TrialPosition) -> dict[str, Any] | None:
    """Bring the caches into the state that the tests require; returns the member for the rows. Raises MachineRefuses:
    it cannot be done."""
    test = members[0]
    if test.cool == "none":
        return None
    directory = bench.writer.path(test.name).parent
    if slot.set_aside is not None:
        return Cooled(test.cool, None, f"not done in a {slot.set_aside}").members()
    bench.notify("hook", test, detail=f"cool {test.cool}")
    done = cool_trial(
        test.cool, test.data, directory, booted=bench.session.restarted_into is not None, warms=False
    )
    return done.members()


def repeat_trials(bench: Bench, test: Test, first_block: int, count: int, within_s: float) -> int:
    """Make up to `count` trials of one test within the engine, which writes their lines itself; returns their number.

    No trial but the first starts after `within_s` seconds. Raises CommandFailed, MachineRefuses: same as `run_trial`.
    """
    path = bench.writer.path(test.name)
    head = _place(bench, test, order=0) | {"cache": None}
    first = bench.progress.next_trial(test.name)
    before, offset = bench.progress.kept(test.name), path.stat().st_size
    launch = _launch(bench, [test], TrialPosition(first_block))
    repeat = Repeat(count, str(path), first, first_block, head, within_s)
    with bench.kernel.following() as messages:
        ended = bench.engine.repeat(
            replace(launch, repeat=repeat),
            lambda done: bench.notify("progress", test, done=before + done),
        )
    rows, _ = read_measurements(path, offset, check=False)
    if messages and (said := messages_by_trial(rows, messages)):
        rows = tuple(
            m._replace(**row_members(said[m.trial])) if m.trial in said and m.worker == 0 else m for m in rows
        )
        bench.writer.write_again(test.name, offset, rows)
    for m in rows:
        _log(bench, test, m)
    bench.progress.add(test.name, rows)
    bench.notify("trial", test)
    if ended.stopped == "failed":
        _judge(bench, test, [row for row in rows if row.trial == rows[-1].trial])
    elif ended.stopped not in (None, "cancelled"):
        raise MachineRefuses(f"{ended.stopped}; correct that, then resume with --resume")
    return ended.done


def needs_nothing_between(plan: Plan, test: Test) -> bool:
    """True if nothing has to happen between two trials except the launch."""
    around = test.prepare or test.conclude or test.cool != "none" or test.groups
    return not (around or test.metrics or plan.check_output == CHECK_EACH)


def _launch(bench: Bench, members: Sequence[Test], slot: TrialPosition) -> Launch:
    plan = bench.plan
    captures = slot.set_aside is not None or plan.check_output == CHECK_EACH
    shares: list[tuple[int, ...] | None] = [test.cpus for test in members]
    if plan.schedule == DUET and len(members) > 1:
        shares = list(disjoint_cpus(bench.engine.hello["cpus"], len(members), slot.block, plan.seed))
    workers = [
        _worker(test, index, share, captures or bool(test.metrics))
        for test, share in zip(members, shares, strict=True)
        for index in range(test.workers)
    ]
    timeouts = [test.timeout_s for test in members if test.timeout_s is not None]
    return Launch(
        tuple(workers),
        timeout_s=min(timeouts, default=None),
        inner=bench.inner.get(members[0].name, 1),  # 1 until its warm-up run is over
        cgroup=group_name(members[0].name) if plan.cgroup else None,
        counters=plan.counters,
        capture_bytes=METRIC_BYTES if members[0].metrics else CAPTURE_BYTES if captures else TAIL_CHARACTERS,
        accept="any" if plan.ignore_failure else "zero",
    )


def group_name(test: str) -> str:
    """Name of the test's cgroup: our prefix and process, a readable part, a checksum of the test's name, and the thread
    unless it is the first: two experiments in one process have groups of their own."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", test)[:60]
    thread = threading.get_native_id()
    own = "" if thread == os.getpid() else f"-{thread}"
    return f"etude-{os.getpid()}-{readable}-{zlib.crc32(test.encode()):08x}{own}"


def _worker(test: Test, index: int, cpus: tuple[int, ...] | None, capture: bool) -> Worker:
    if cpus is not None and test.workers > 1:
        cpus = (cpus[index % len(cpus)],)
    return Worker(
        test.command,
        env=test.environment,
        cwd=test.directory,
        stdin="null" if test.stdin is None else {"file": test.stdin},
        stdout="capture" if capture else "null",
        stderr="capture",
        cpus=cpus,
    )


def _parts(
    bench: Bench, members: Sequence[Test], rows: Sequence[dict[str, Any]]
) -> list[tuple[Test, list[dict[str, Any]]]]:
    if len(members) > 1:
        rows = [row | {"metrics": _without_shared(row["metrics"])} for row in rows]
    parts, start = [], 0
    for test in members:
        parts.append(
            (test, [row | {"worker": i} for i, row in enumerate(rows[start : start + test.workers])])
        )
        start += test.workers
    return parts


def _without_shared(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """A duet's metrics without the values of the whole trial, which belong to no single party."""
    return {
        name: [None, value[1], "counted for all parties of the duet together"]
        if metric_kind(name, value[1]).join == "first"
        else value
        for name, value in metrics.items()
    }


def _place(bench: Bench, test: Test, order: int) -> dict[str, Any]:
    sitting = bench.session
    return {
        "test": test.name,
        "order": order,
        "host": sitting.host,
        "sitting": sitting.number,
        "boot_id": sitting.boot_id,
        "command": bench.plan.mask.words(test.command),
    }


def _measurements(
    bench: Bench,
    test: Test,
    slot: TrialPosition,
    rows: Sequence[dict[str, Any]],
    cache: Mapping[str, Any] | None,
    killed: int,
) -> tuple[Measurement, ...]:
    place = _place(bench, test, slot.order) | {"cache": cache}
    place |= {"trial": bench.progress.next_trial(test.name), "block": slot.block}
    plain = [from_line(row | place | {"kept": True, "why": None}) for row in rows]
    why = _why_not_kept(bench, plain) or slot.set_aside or (OOM_KILLED if killed else None)
    if killed:
        note = f"the OOM killer ended {killed} process{'' if killed == 1 else 'es'} in the command's cgroup"
        rows = [row | {"notes": [*(row.get("notes") or ()), note]} for row in rows]
    return tuple(
        from_line(_with_output_metrics(bench, test, row) | place | {"kept": why is None, "why": why})
        for row in rows
    )


def _whole(
    trials: list[tuple[Test, tuple[Measurement, ...]]],
) -> list[tuple[Test, tuple[Measurement, ...]]]:
    """The trials of a duet, all included or all excluded, since a duet is repeated as a whole."""
    why = next((m.why for _, rows in trials for m in rows if not m.kept), None)
    if why is None or len(trials) == 1:
        return trials
    return [(test, tuple(m._replace(kept=False, why=m.why or why) for m in rows)) for test, rows in trials]


def _why_not_kept(bench: Bench, measurements: Sequence[Measurement]) -> str | None:
    if any(m.cancelled for m in measurements) and bench.watch.count:
        return "cancelled"
    if any(m.unfinished or (m.failed and not bench.plan.ignore_failure) for m in measurements):
        return "failed"
    return None


def _with_output_metrics(bench: Bench, test: Test, row: Mapping[str, Any]) -> dict[str, Any]:
    text = printed_text(row.get("stdout"), row.get("stderr"))
    found = [printed_metric(p.name, p.unit, p.regex, text, p.join) for p in test.metrics]
    note_matches(bench.entries.get(test.name, {}), found)
    notes = [*(row.get("notes") or ()), *(each.note for each in found if each.note)]
    metrics = {**row["metrics"], **{each.name: each.value for each in found}}
    return {**row, "metrics": metrics, **({"notes": notes} if notes else {})}


def _write(bench: Bench, test: Test, measurements: tuple[Measurement, ...]) -> None:
    shortened = []
    for m in measurements:
        _log(bench, test, m)
        changes: dict[str, Any] = {}
        for stream in ("stdout", "stderr"):
            captured = getattr(m, stream)
            if captured:
                changes[stream] = {**captured, "tail": captured["tail"][-TAIL_CHARACTERS:]}
        shortened.append(m._replace(**changes))
    bench.writer.append(test.name, shortened)
    bench.measured = True
    bench.progress.add(test.name, measurements)
    bench.notify("trial", test)


def _log(bench: Bench, test: Test, m: Measurement) -> None:
    """Write the log of a worker: its standard error, all output of a trial that failed or was excluded, and the report
    of a replay or a load."""
    for stream in ("stdout", "stderr"):
        captured = getattr(m, stream)
        if not captured or not captured["bytes"]:
            continue
        report = stream == "stdout" and holds_report(captured["tail"])
        if report or stream == "stderr" or not m.kept or m.failed:
            text = captured["tail"] if report else captured["tail"][-CAPTURE_BYTES:]
            bench.writer.log(test.name, f"{m.trial:04d}-{m.worker}.{stream}", text)


def _ending(test: Test, m: Measurement) -> str:
    """Description of its end; for a program that was not found, with advice."""
    if m.error is None or NOT_FOUND not in m.error:
        return m.ending_here()
    return f"not started: {m.error.partition(';')[0]}; {advice(test.command, test.directory)}"


def _lost_to_oom_killer(bench: Bench, test: Test) -> bool:
    """True if several trials of the test lost a process to the OOM killer, and none is included."""
    lost = sum(trial.first.why == OOM_KILLED for trial in bench.progress.trials(test.name))
    return lost >= MAX_OOM_KILLED and not bench.progress.kept(test.name)


def _judge(bench: Bench, test: Test, measurements: Sequence[Measurement]) -> None:
    """Stop the experiment if the trial failed, or if a metric's pattern does not fit the first output. Raises
    CommandFailed: it failed; UsageError: the pattern."""
    if measurements[0].why == OOM_KILLED and _lost_to_oom_killer(bench, test):
        note = (measurements[0].notes or ("",))[-1]
        raise CommandFailed(f"{test.name}: trial {measurements[0].trial}: {note}, as in all trials so far")
    by_itself_first = sorted(measurements, key=lambda m: m.cancelled_only)  # it ended the others
    for m in by_itself_first:
        if m.unfinished or (m.failed and not bench.plan.ignore_failure):
            said = (m.stderr or {}).get("tail", "").strip().splitlines()
            hint = "" if m.unfinished else "; if that is how it should end, use --ignore-failure"
            raise CommandFailed(
                f"{test.name}: trial {m.trial}: {_ending(test, m)}{': ' + said[-1] if said else ''}{hint}"
            )
        for pattern in test.metrics:
            value = m.metrics[pattern.name]
            if value[0] is None and not m.kept:
                logs = bench.writer.path(test.name).parent / "logs"
                raise UsageError(
                    f"metric {pattern.name} of {test.name!r}: {value[2]}; its first output is in {logs}"
                )
