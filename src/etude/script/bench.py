"""The real world of a script: runs its lines, and writes the measurements to disk."""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.engine import Launch
from etude.errors import CommandFailed, EtudeError, MachineRefuses
from etude.experiment.bench import Event
from etude.experiment.output_metric import OutputMetric, note_matches, printed_metric
from etude.experiment.progress import Progress
from etude.experiment.session import SessionContext
from etude.experiment.trial import cool_trial, group_name, list_data_set, restart_machine
from etude.machine.boot import record, unit
from etude.machine.boot.entries import booted_as
from etude.machine.cool.methods import REBOOTS
from etude.machine.remote.hosts import LOCAL
from etude.masking import Mask
from etude.results.blocks import DISK_BLOCKS, Block, members_of
from etude.results.model import FIRST_RUN, Measurement, from_line
from etude.results.windows import NewWindows
from etude.results.writer import directory_name
from etude.script import checkpoint, environment, stop
from etude.script.arguments import FIRST_NUMBER, CopyCommand, parse_exec
from etude.script.checkpoint import STATE_FILE
from etude.script.directive_words import command_words, words_of
from etude.script.disk import file_system_under_test
from etude.script.environment import search_path
from etude.script.hook_lines import ExecProbes, HookLines
from etude.script.program import Program
from etude.script.remote import Remote, Shared, Trial, WorkerGroup, start_spread
from etude.script.resfiles import ResFiles, file_name
from etude.script.rows import (
    accepted_rows,
    drop_outputs,
    keep_outputs,
    partial_notes,
    printed_metrics,
    read_log,
    rows_of,
    why_failed,
)
from etude.script.state import OF_OUTPUT, RunningTest, Scope, State
from etude.script.stop import failure_of
from etude.script.world import CANCELLED, TrialOnDisk

if TYPE_CHECKING:
    from etude.script.quiet import ScriptQuiet

SAFE_EVERY_S = 1.0
"""Minimum interval between saves of the state, s; a trial that is on disk is never run again anyway."""


class ScriptBench:
    """One session of a script. It implements `World`."""

    def __init__(
        self,
        context: SessionContext,
        program: Program,
        observe: Callable[[Event, Progress], None],
        *,
        expected: int = 0,
        res: bool = True,
        counters: str = "auto",
        masks: Sequence[str] = (),
    ) -> None:
        """`expected`: number of tests in the script, 0 if unknown; `res`: also write Auto-pilot's format."""
        self.environment: Mapping[str, str] = os.environ
        self._context = context
        self._program = program
        self._observe = observe
        self._expected = expected
        self._res = res
        self._counters = counters
        self._root = context.path.resolve()
        self._entries: dict[str, dict[str, Any]] = {}
        self._res_files = ResFiles(self._root)
        self._measuring = ExecProbes(context.engine)
        self._quiet: ScriptQuiet | None = None
        self._scopes: dict[str, Scope] = {}
        """Scope of the last EXEC of the trial in flight, by test."""
        self._partial: set[str] = set()
        """Tests with a warning that a METRIC has values of some workers only."""
        self._remote = Remote(context)
        self._lines = HookLines(context, self._remote)
        self._mask = Mask(masks)
        self._saved_at = -float("inf")
        self._survives = record.is_registered(self._root)
        """True if it resumes at the next boot, however this one ends."""

    # --- messages -----------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        return self._context.watch.signal is not None

    def _notify(self, what: str, *tests: RunningTest, detail: str = "") -> None:
        self._observe(Event(what, tests, detail), self._context.progress)

    def echo(self, text: str) -> None:
        self._notify("echo", detail=text)

    def warn(self, text: str) -> None:
        self._notify("warning", detail=text)

    # --- tests --------------------------------------------------------------------------------------

    def begin_test(self, test: RunningTest) -> None:
        """Add the test to the results, or resume from its earlier trials."""
        number = f"test {len(self._entries) + 1}" + (f" of {self._expected}" if self._expected else "")
        self._notify("group", test, detail=number)
        tests: list[dict[str, Any]] = self._context.document["tests"]
        entry = next((t for t in tests if t["name"] == test.name), None)
        if entry is None:
            entry = self._entry(test, tests)
            tests.append(entry)
            self._context.writer.add(test.name, entry["directory"])
            self._context.progress.begin(test.name)
            if entry["res"]:
                self._res_files.begin(entry["res"], self._context.document["machine"]["before"])
            self._context.save()
        elif entry["res"]:
            there = self._context.progress.trials(test.name)
            self._res_files.complete(
                entry["res"], [m for each in there for m in each.measurements if m.why != FIRST_RUN]
            )
        self._entries[test.name] = entry

    def trials(self, test: RunningTest) -> Sequence[TrialOnDisk]:
        trials = [trial.first for trial in self._context.progress.trials(test.name)]
        return [TrialOnDisk(first.trial, first.block, first.why) for first in trials]

    def end_reason(self, test: RunningTest) -> str:
        return str(self._test_entry(test).get("ended") or "")

    def _entry(self, test: RunningTest, tests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            "name": test.name,
            "directory": directory_name(test.name, [t["directory"] for t in tests]),
            "role": "test",
            "parameters": dict(test.parameters),
            "workers": test.threads,
            "group": test.group,
            "minimum": test.minimum,
            "stop_program": shlex.join(test.program) if test.program else None,
            "res": file_name(test.name, [t.get("res") for t in tests]) if self._res else None,
        }

    def end_test(self, test: RunningTest) -> None:
        entry = self._test_entry(test)
        if not self._context.progress.trials(test.name) and not entry.get("failure"):
            test.why = "no trial has executed an EXEC"
        entry |= {"purpose": test.purpose, "expect": test.expect, "cache": test.cache, "ended": test.why}
        entry["limited"] = bool(test.program) and test.why.startswith(stop.LIMITED)
        self._context.writer.sync()  # trials of an ended test are never made again
        self._context.save()
        self._notify("ended", test, detail=test.why)
        drop_outputs(self._directory(test))
        self._res_files.end(entry["res"])
        self._lines.end_test(test.name)
        self._remote.end_test(test.name)

    def _variables(self, scope: Scope, mode: str, test: RunningTest | None) -> dict[str, str]:
        script = os.path.abspath(self._program.path)
        return environment.variables(scope, mode, test, self.environment, self._root, script)

    def _test_entry(self, test: RunningTest) -> dict[str, Any]:
        return self._entries[test.name]

    def spent_s(self, test: RunningTest) -> float:
        return self._context.progress.spent_s([test.name])

    def check_rule(self, test: RunningTest) -> None:
        progress = self._context.progress
        trial = next((trial for trial in progress.trials(test.name) if trial.kept), None)
        metrics = {name: progress.count(test.name, name) for name in trial.metrics()} if trial else {}
        stop.check_metrics(test.name, test.program, metrics, test.kept >= test.minimum)

    def stop_decision(self, test: RunningTest, scope: Scope) -> tuple[bool, str]:
        def run(program: Sequence[str]) -> str | None:
            line = shlex.join([*program, str(self._root / str(self._test_entry(test)["res"]))])
            why = self._lines.here(test.name, "STOP", line, self._variables(scope, "STOP", test))
            if why is not None and any(f"(exit status {status})" in why for status in (126, 127)):
                raise CommandFailed(f"the stop program cannot be run: {why}")
            return why

        self.check_rule(test)
        enough, why = stop.evaluate_stop_program(
            test.program, lambda metric: self._context.progress.sample(test.name, metric), run
        )
        self._notify("decision", test, detail=why)
        return enough, why

    # --- commands -----------------------------------------------------------------------------------

    def hosts(self, path: str) -> None:
        self._notify("hook", detail=f"HOSTS {path}")
        self._remote.open(path)

    def copy(self, copied: CopyCommand, test: RunningTest | None) -> str | None:
        self._notify("hook", *([test] if test else []), detail="COPY")
        logs = Path(self._directory(test)) if test else self._root
        return self._remote.copy(copied, logs / "logs", test.trial if test else 0)

    def system(self, line: str, scope: Scope) -> str | None:
        self._notify("hook", detail=f"SYSTEM {line}")
        return self._lines.run("SYSTEM", line, None, scope, self._variables(scope, "SYSTEM", None))

    def quiet(self, words: Sequence[str]) -> str | None:
        self._notify("hook", detail=f"QUIET {' '.join(words) or 'off'}")
        quieting = self._quieting()
        try:
            if not words:
                quieting.off()
            elif told := quieting.on(words, self._context.document, self._context.session.number):
                self.warn(told)
        except EtudeError as error:
            return f"QUIET failed: {error}"
        finally:
            self._context.save()
        return None

    def _quieting(self) -> ScriptQuiet:
        from etude.script.quiet import ScriptQuiet

        self._quiet = self._quiet or ScriptQuiet()
        return self._quiet

    def hook(self, point: str, line: str, test: RunningTest, scope: Scope) -> str | None:
        self._notify("hook", test, detail=point)
        if point == "CLEANUP":
            self._measure_aside(test, scope)
        log = f"{self._directory(test)}/aplog"
        around = self._variables(scope, point, test) | {"APLOG": log}
        reason = self._lines.run(point, line, test, scope, around)
        for block in read_log(log):
            name = f"{point.lower()}-measurement" if block.name == "measurement" else block.name
            test.blocks.append({"worker": None, "name": name, "lines": list(block.lines)})
            self._note_disk(test, block)
        return reason

    def _measure_aside(self, test: RunningTest, scope: Scope) -> None:
        """Run the commands of METRIC … FROM CLEANUP: once per trial, after its last EXEC and before
        the clean-up lines."""
        metrics = test.rows[0]["metrics"] if test.rows and not test.failed and not self.stopped else None
        for name, its_unit, regex, join, command in (m for m in test.metrics if len(m) > OF_OUTPUT):
            if metrics is None or name in metrics:
                continue
            output = Path(self._directory(test), f"{name}.printed")
            line = f"( {command}\n) > {shlex.quote(str(output))}"
            why = self._lines.here(test.name, "CLEANUP", line, self._variables(scope, "CLEANUP", test))
            text = output.read_text("utf-8", "replace") if output.exists() else ""
            output.unlink(missing_ok=True)
            found = printed_metric(name, its_unit, regex, text, join)
            metrics[name] = [None, found.value[1], f"{command}: failed"] if why else found.value
            if regex != FIRST_NUMBER and not why:
                note_matches(self._test_entry(test), [found])
            if test.made == 0 and (why or found.value[0] is None):
                self.warn(f"METRIC {name} of test {test.name!r}: {why or found.value[2]}")
            elif test.made == 0 and found.note and regex != FIRST_NUMBER:
                self.warn(f"test {test.name!r}: {found.note}")

    def _note_disk(self, test: RunningTest, block: Block) -> None:
        if block.name in DISK_BLOCKS:
            entry = self._test_entry(test)
            entry["disk"] = {**entry.get("disk", {}), block.name: {"trial": test.trial, **members_of(block)}}

    def execute(self, line: str, test: RunningTest, scope: Scope) -> str | None:
        self._scopes[test.name] = scope
        placed = parse_exec(line)
        crew = WorkerGroup(placed.hosts or (LOCAL,), test.threads, self._directory(test))
        crew.open()
        words = command_words(placed.line)
        shared = Shared(
            words, test.timeout_s, group_name(test.name), self._counters, self._variables(scope, "EXEC", test)
        )
        if not test.booted and not placed.hosts:  # keep the caches as the boot left them
            again = self._context.resumed and bool(self._context.progress.trials(test.name))
            if self._context.machine.note(words, shared.variables, again=again):
                self._context.save()  # so that a killed script is resumed with the same programs only
        try:
            self._cool(test)
            offsets = self._remote.prepare(crew.hosts)
            launches = {host: self._launch(crew, host, shared, scope, test) for host in crew.hosts}
        except MachineRefuses as error:
            return f"test {test.name!r}, trial {test.trial}: {error}"
        self._note_file_system(test, shared.variables)
        if watched := words_of(scope.variables.get("WATCH", "")):
            self._test_entry(test)["watch"] = watched
        trial = Trial()

        def run(launch: Launch) -> list[dict[str, Any]]:
            if not placed.hosts and not self._remote.measures:
                return self._context.engine.launch(launch)
            nonlocal trial
            trial = self._remote.run(launches, offsets)
            return trial.rows

        probes = scope.variables.get("PROBES", "")
        here = launches.get(LOCAL) or crew.launch(LOCAL, shared)
        self._context.kernel.begin()
        rows, blocks, notes = self._measuring.launch(here, probes, test.name, test.trial, run)
        said = self._context.kernel.end()
        accepted_rows(rows, placed.accepted)
        notes += crew.take(rows, self._remote)
        kept = keep_outputs(crew.outputs, test.trial)
        printed = [printed_metrics(test.metrics, output) for output in kept]
        self._warn_of_metrics(test, printed)
        taken = [file.end() for file in crew.windows]
        self._warn_of_windows(test, taken)
        logs = list(map(read_log, crew.logs))
        lines, others = rows_of(rows, logs, printed, taken, list(words), notes)
        lines = [row | {"command": self._mask.words(row["command"])} for row in lines]
        accepted_rows(lines, placed.accepted)
        if trial.places:
            lines = [row | trial.places[row["worker"]] for row in lines]
            lines[0]["metrics"] |= {"start_spread": start_spread(lines, len(crew.numbers))}
        lines[0] |= said
        test.rows += lines
        test.blocks += [*blocks, *others]
        list_data_set(test.cache, test.data, Path(crew.directory))
        failed = f"test {test.name!r}, trial {test.trial}: {trial.why}" if trial.why else None
        return failed or why_failed(test, rows, kept)

    def _launch(
        self, crew: WorkerGroup, host: str, shared: Shared, scope: Scope, test: RunningTest
    ) -> Launch:
        if host == LOCAL:
            return crew.launch(host, shared)
        there = self._remote[host]
        variables = environment.remote_environment(scope, "EXEC", test) | there.variables()
        return crew.launch(host, replace(shared, variables=variables), there.facts.directory)

    def _note_file_system(self, test: RunningTest, variables: Mapping[str, str]) -> None:
        entry = self._test_entry(test)
        if "file_system" not in entry:
            before = (self._context.document["machine"]["before"] or {}).get("mounts") or {}
            entry["file_system"] = file_system_under_test({**self.environment, **variables}, before)

    def _cool(self, test: RunningTest) -> None:
        if test.cache == "none" or test.cooled:
            return
        self._notify("hook", test, detail=f"CACHE {test.cache}")
        directory = Path(self._directory(test))
        booted = test.booted and self._context.session.restarted_into is not None
        done = cool_trial(test.cache, test.data, directory, booted=booted, warms=test.set_aside)
        test.cooled = done.members()
        if done.wrong is not None:
            self.warn(f"test {test.name!r}, trial {test.trial}: CACHE {test.cache}: {done.wrong}")

    def _warn_of_metrics(self, test: RunningTest, printed: Sequence[Sequence[OutputMetric]]) -> None:
        """Warn once of a METRIC that does not fit the first output, or finds several values in it; and of one that only
        some workers have printed."""
        for of_worker in printed:
            note_matches(self._test_entry(test), of_worker)
        for found in printed[0] if not test.made and not test.rows else ():
            if found.value[0] is None:
                self.warn(f"METRIC {found.name} of test {test.name!r}: {found.value[2]}")
            elif found.note:
                self.warn(f"test {test.name!r}: {found.note}")
        for note in partial_notes(printed) if test.name not in self._partial else ():
            self._partial.add(test.name)
            self.warn(f"test {test.name!r}, trial {test.trial}: {note}; the others are joined")

    def _warn_of_windows(self, test: RunningTest, taken: Sequence[NewWindows]) -> None:
        for worker, found in enumerate(taken, 1):
            if found.note:
                which = f", thread {worker}" if len(taken) > 1 else ""
                self.warn(f"test {test.name!r}, trial {test.trial}{which}: {found.note}")

    # --- what is on disk ----------------------------------------------------------------------------

    def end_trial(self, test: RunningTest) -> None:
        context = self._context
        self._measure_aside(test, self._scopes.pop(test.name, Scope()))
        if test.rows:
            measurements = self._finished(test)
            context.writer.append(test.name, measurements)
            context.progress.add(test.name, measurements)
            self._append_res(test, measurements)
        if test.failed and not self.stopped:
            directory = self._test_entry(test)["directory"]
            self._test_entry(test)["failure"] = failure_of(
                directory, test.trial, test.failed_at, test.failed, test.rows
            )
        for worker, blocks in itertools.groupby(test.blocks, lambda block: block["worker"]):
            context.writer.blocks(test.name, test.trial, worker, map(_block, blocks))
        self._notify("trial", test)

    def _finished(self, test: RunningTest) -> list[Measurement]:
        sitting = self._context.session
        why = CANCELLED if test.failed and self.stopped else "failed" if test.failed else None
        if why is None and test.set_aside:
            why = FIRST_RUN
        place = {
            "test": test.name,
            "trial": test.trial,
            "block": test.block if test.group is not None else test.trial,
            "order": test.order,
            "sitting": sitting.number,
            "kept": why is None,
            "why": why,
            "cache": test.cooled or None,
            "rows": len(test.rows) if len(test.rows) != test.threads else None,
        }
        here = {"host": sitting.host, "boot_id": sitting.boot_id}
        return [from_line(here | row | place) for row in test.rows]

    def _append_res(self, test: RunningTest, measurements: Sequence[Measurement]) -> None:
        name = self._test_entry(test)["res"]
        if name is not None and not test.set_aside:
            self._res_files.append(name, measurements, [_block(block) for block in test.blocks])

    def _directory(self, test: RunningTest) -> str:
        return f"{self._root}/{self._test_entry(test)['directory']}"

    def failed(self, reason: str, script: str, test: RunningTest | None, scope: Scope) -> None:
        self._context.writer.sync()
        self._context.save()
        self._notify("failed", *([test] if test else []), detail=reason)
        if script:
            around = self._variables(scope, "FASTFAIL", test)
            around |= {"APEVENT": "failure", "APREASON": reason}
            problem = self._lines.here("", "FASTFAIL", script, around)
            if problem is not None:
                self.warn(problem)

    def close(self) -> None:
        """End the processes that hooks have left, and restore a quiet machine."""
        self._lines.close()
        if self._quiet is not None:
            try:
                self._quiet.off()
            except EtudeError as error:
                self.warn(f"the machine is not as it was before QUIET: {error}; etude quiet off tries again")
        self._remote.close()
        self._res_files.close()

    # --- the state ----------------------------------------------------------------------------------

    def checkpoint(self, path: str, state: State) -> None:
        self._keep(Path(path), state)
        if os.geteuid() == 0 and unit.status().installed:
            try:
                record.register(["run", os.path.abspath(path)], path, self._root)
                self._survives = True
            except MachineRefuses as error:  # another experiment waits: this one can still be resumed by hand
                self.warn(f"CHECKPOINT {path}: not for the next boot: {error}")

    def _keep(self, path: Path, state: State) -> None:
        self._context.writer.sync()
        self._context.save()
        self._save(path, state, exact=True)

    def needs_restart(self, test: RunningTest) -> bool:
        runs, words = booted_as(test.boot) if test.boot else (True, "")
        if runs is None:  # all that is known is that it was requested
            runs = self._context.session.restarted_into == test.boot
        if test.booted and not runs:
            raise MachineRefuses(f"BOOT {test.boot}: something else came up: {words}")
        return not test.booted and (test.cache in REBOOTS or not runs)

    def restart(self, entry: str, state: State) -> None:
        test = state.running
        if test is not None:
            list_data_set(test.cache, test.data, Path(self._directory(test)))
        file = self._root / STATE_FILE
        self._keep(file, state)
        restart_machine(entry, ["run", str(file)], file, self._root)

    def safe_point(self, state: State) -> None:
        now = time.monotonic()
        if now - self._saved_at >= SAFE_EVERY_S:
            self.save(state)

    def save(self, state: State) -> None:
        self._saved_at = time.monotonic()
        if self._survives:  # the state must not be ahead of the results on disk
            self._context.writer.sync()
        self._save(self._root / STATE_FILE, state, exact=False)

    def stop_here(self, state: State) -> None:
        """Store the state of an interrupted script."""
        self._save(self._root / STATE_FILE, state, exact=False)

    def _save(self, path: Path, state: State, *, exact: bool) -> None:
        saved = checkpoint.Checkpoint(
            os.path.abspath(self._program.path),
            self._program.digest,
            os.path.relpath(self._root, path.parent.resolve()),
            state,
            exact,
            search_path(self.environment),
            self._context.session.boot_id,
            {
                test["name"]: self._context.progress.kept(test["name"])
                for test in self._context.document["tests"]
            },
        )
        checkpoint.save(path, saved, quick=not exact and not self._survives)


def _block(data: Mapping[str, Any]) -> Block:
    return Block(data["name"], tuple(data["lines"]))
