"""The step machine: one instruction after the other, all state in `State`, all effects through `World`.

A test's body is run once per trial, from TEST to its DONE, in the order of the script (Auto-pilot paper, section 3.1).
Between any two steps the state may be saved, and a new machine resumes from it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from etude.errors import CommandFailed, EtudeError
from etude.results.model import FIRST_RUN
from etude.script import arguments
from etude.script.directive_words import ArgumentError
from etude.script.disk import engine_line, parse_disk
from etude.script.flow import Flow
from etude.script.program import Instruction, Program
from etude.script.state import (
    OF_OUTPUT,
    Interleave,
    Party,
    RunningTest,
    Scope,
    State,
    forget_trial,
    reset_trial,
)
from etude.script.stop import GIVEN_UP, LIMITED
from etude.script.world import CANCELLED, World

Answer = TypeVar("Answer")
MAX_TRIALS = 1000
"""Maximum trials of a test with a stop program that names no MAX."""
HOSTS_FILE = "HOSTSFILE"
"""Variable that HOSTS sets."""
FAILURES_IN_A_ROW = 3
"""Consecutive failed trials after which a test is given up."""


class GivenUp(CommandFailed):
    """The script has ended, and tests were given up."""


class Machine(Flow):
    """Runs `program` from `state`."""

    def __init__(self, program: Program, state: State, world: World) -> None:
        super().__init__(program, state, world)
        parties = [party.test for party in state.interleave.parties] if state.interleave else []
        if HOSTS_FILE in state.here.variables:
            world.hosts(state.here.variables[HOSTS_FILE])
        self._ending = False
        """True if all trials of the test under way are on disk: its body is run only for its POSTCLEANUP."""
        self._blocks_on_disk: dict[str, int] = {}
        """Last block with a trial of an earlier session, by test."""
        for test in parties:
            self._resume_test(test)
        if state.test is not None:
            self._resume_test(state.test, state.here)
        elif state.interleave is not None and state.interleave.order:
            self._next_turn(state.interleave, resumed=True)

    def _stop(self, _: Instruction, text: str) -> None:
        if self.state.running is not None:
            self.world.end_trial(self.state.running)
        self._end()

    def _end(self) -> None:
        self.done = True
        given_up = self.state.given_up
        if given_up:
            raise GivenUp(f"given up, their trials kept failing: {', '.join(given_up)}")

    # --- commands outside a test ---------------------------------------------------------------------

    def _system(self, _: Instruction, text: str) -> None:
        test = self.state.running
        if test is not None and test.failed:
            return
        at = self.state.counter - 1
        reason = self.world.system(text, self._scope)
        if self.world.stopped:
            self.state.counter = at if test is None else self.state.counter
        elif reason is not None:
            self._failed("SYSTEM", reason)

    def _hosts(self, _: Instruction, text: str) -> None:
        self._assign(HOSTS_FILE, os.path.join(self._variables.get("SCRIPTDIR", ""), text))
        self.world.hosts(self._variables[HOSTS_FILE])

    def _copy(self, _: Instruction, text: str) -> None:
        test, copied = self.state.running, arguments.parse_copy(text)
        if test is None or not test.failed or copied.back:  # files of a failed trial are still fetched
            self._failed("COPY", self.world.copy(copied, test))

    def _fastfail(self, _: Instruction, text: str) -> None:
        self.state.fastfail = text

    def _checkpoint(self, _: Instruction, text: str) -> None:
        test = self.state.running
        if test is not None and test.failed:
            return
        scope = self._scope
        scope.variables["RESTORE"] = "1"
        try:
            self.world.checkpoint(text, self.state)
        finally:
            scope.variables["RESTORE"] = "0"

    def _reboot(self, _: Instruction, text: str) -> None:
        test = self.state.running
        if test is not None and test.failed:
            return
        scope = self._scope
        scope.variables["RESTORE"] = "1"
        self.world.restart(text, self.state)
        scope.variables["RESTORE"] = "0"

    def _quiet(self, _: Instruction, text: str) -> None:
        words = arguments.parse_quiet(text or self._environment.get("APQUIET", ""))
        if not words or (words == [arguments.QUIET_OFF] and not self.state.quiet):
            return
        self.state.quiet = [] if words == [arguments.QUIET_OFF] else [*self.state.quiet, *words]
        self._failed("QUIET", self.world.quiet(() if words == [arguments.QUIET_OFF] else words))

    # --- tests ------------------------------------------------------------------------------------

    def _test(self, instruction: Instruction, text: str) -> None:
        header = arguments.parse_test(text)
        state, scope = self.state, self._scope
        maximum = header.maximum
        if maximum is None and header.program:
            maximum = max(MAX_TRIALS, header.minimum)
        test = RunningTest(
            name=header.name,
            begin=state.counter - 1,
            threads=scope.threads,
            minimum=header.minimum,
            maximum=maximum,
            budget_s=header.budget_s,
            step=header.step,
            program=list(header.program),
            parameters={loop.name: scope.variables[loop.name] for loop in state.loops},
        )
        if state.interleave is not None:
            test.group = state.interleave.group
            state.interleave.parties.append(Party(test, scope.copy()))
            state.counter = instruction.target + 1
            return
        state.test = test
        self._resume_test(test, scope)
        self.world.safe_point(state)

    def _resume_test(self, test: RunningTest, scope: Scope | None = None) -> None:
        """Add a test to the results, and count the trials on disk that are not in the state.

        With its scope, also evaluate the stop rule, if there are such trials.
        """
        self.world.begin_test(test)
        found = [trial for trial in self.world.trials(test) if trial.number >= test.trial]
        for trial in found:
            test.trial = trial.number + 1
            if trial.why not in (FIRST_RUN, CANCELLED):
                self._tally(test, f"trial {trial.number} failed" if trial.why else None)
                self._blocks_on_disk[test.name] = trial.block
        test.why = test.why or self.world.end_reason(test)
        if _given_up(test) and test.name not in self.state.given_up:
            self.state.given_up.append(test.name)
        if scope is not None and (test.why or (found and self._has_enough(test, scope))):
            self._ending = True
            self._begin_trial(test)

    def _running(self) -> RunningTest:
        test = self.state.running
        assert test is not None, "the parser lets nothing of a test stand outside one"
        return test

    def _purpose(self, _: Instruction, text: str) -> None:
        self._running().purpose = text

    def _expect(self, _: Instruction, text: str) -> None:
        self._running().expect = text

    def _metric(self, _: Instruction, text: str) -> None:
        parsed, test = arguments.parse_metric(text), self._running()
        metric = [*parsed] if len(parsed) > OF_OUTPUT else [*filter(None, parsed)]
        if metric in test.metrics:
            return
        if any(metric[0] == other[0] for other in test.metrics):
            raise ArgumentError(f"{metric[0]} is read in another way already; choose another name", 1)
        test.metrics.append(metric)

    def _cache(self, _: Instruction, text: str) -> None:
        test = self._running()
        test.cache, data = arguments.parse_cache(text)
        test.data = list(data)
        if test.cache == "warm" and not test.warmed and not test.rows:
            test.set_aside = True
            if test.made == 0 and test.trial == 1 and not self.world.trials(test):
                test.trial = 0

    def _timeout(self, _: Instruction, text: str) -> None:
        self._running().timeout_s = arguments.parse_timeout(text)

    def _boot(self, _: Instruction, text: str) -> None:
        self._running().boot = text

    def _presetup(self, _: Instruction, text: str) -> None:
        if not self._running().prepared:
            self._hook("PRESETUP", text)

    def _setup(self, _: Instruction, text: str) -> None:
        self._restart_first(self._running())
        self._hook("SETUP", text)

    def _disk(self, instruction: Instruction, text: str) -> None:
        """Run at its place in each trial, like SETUP; with ONCE before the first trial, like PRESETUP."""
        test, directive = self._running(), instruction.op.value
        step = parse_disk(directive, text)
        if step.once and test.prepared:
            return
        if not step.once:
            self._restart_first(test)
        self._hook(directive, engine_line(directive, step))

    _age = _fill = _precondition = _disk

    def _exec(self, _: Instruction, text: str) -> None:
        test = self._running()
        self._restart_first(test)
        if not test.failed:
            self._failed("EXEC", self.world.execute(text, test, self._scope))

    def _restart_first(self, test: RunningTest) -> None:
        """Restart the machine in a trial that needs it: after PRESETUP, before anything is mounted.

        Raises:
            Restarting: resumes with this very line.
        """
        if test.failed or not self.world.needs_restart(test):
            return
        counter, test.booted = self.state.counter, True
        self.state.counter = counter - 1
        self.world.restart(test.boot, self.state)
        self.state.counter = counter

    def _cleanup(self, _: Instruction, text: str) -> None:
        if self._ending:
            return
        reason = self.world.hook("CLEANUP", text, self._running(), self._scope)
        if reason is not None:
            self._failed("CLEANUP", reason)

    def _postcleanup(self, _: Instruction, text: str) -> None:
        self._running().postcleanup.append(text)

    def _hook(self, point: str, text: str) -> None:
        test = self._running()
        if not test.failed:
            self._failed(point, self.world.hook(point, text, test, self._scope))

    def _failed(self, point: str, reason: str | None) -> None:
        """Handle a failure: stop the script, or mark the trial as failed.

        Raises:
            CommandFailed: FASTFAIL.
        """
        test = self.state.running
        if reason is None:
            return
        if self.world.stopped:  # it failed because it was ended
            if test is not None:
                test.failed, test.failed_at = test.failed or reason, point
            return
        if test is not None and point != "CLEANUP" and not test.failed:
            test.failed, test.failed_at = reason, point
        if self.state.fastfail is None:
            self.world.warn(reason)
            return
        if test is not None:
            self.world.end_trial(test)
        self.world.failed(reason, self.state.fastfail, test, self._scope)
        raise CommandFailed(f"{reason}; FASTFAIL: everything was stopped and left unchanged")

    def _end_test(self, instruction: Instruction, _: str) -> None:
        test, interleave = self._running(), self.state.interleave
        again = False
        if self._ending:
            test.prepared = True
            forget_trial(test)
        else:
            self.world.end_trial(test)
            if self._unwinding:
                self._give_back()
                return
            again = test.set_aside and not test.failed
            self._count(test)
        if again:
            self._begin_trial(test)
        elif interleave is not None:
            interleave.order.pop(0)
            self._next_turn(interleave)
        elif self._ending or self._has_enough(test, self._scope):
            self._finish(Party(test, self._scope))
        else:
            self._begin_trial(test)
        self.world.safe_point(self.state)

    def _count(self, test: RunningTest) -> None:
        """Record the end of the trial, and prepare the test for its next one."""
        self._tally(test, test.failed, warm_up=test.set_aside, hopeless=test.failed_at == "PRESETUP")
        test.prepared = True
        test.warmed = test.warmed or (test.set_aside and not test.failed)
        test.trial += 1
        forget_trial(test)

    def _tally(
        self, test: RunningTest, failed: str | None, *, warm_up: bool = False, hopeless: bool = False
    ) -> None:
        if failed:
            test.failed_in_a_row += 1
        else:
            test.failed_in_a_row = 0
            test.kept += not warm_up
        test.made += not warm_up
        if failed and (hopeless or test.failed_in_a_row >= FAILURES_IN_A_ROW):
            test.why = f"{GIVEN_UP}: {failed}"
            self.state.given_up.append(test.name)

    def _begin_trial(self, test: RunningTest) -> None:
        state = self.state
        state.loops = [loop for loop in state.loops if loop.start < test.begin]
        state.counter = test.begin + 1
        test.postcleanup = []
        if self._ending:
            forget_trial(test)
            test.failed = "its trials are on disk"

    def _has_enough(self, test: RunningTest, scope: Scope) -> bool:
        """True if no further trial is needed; `test.why` is set to the reason."""
        if test.why:
            return True
        if test.maximum is not None and test.made >= test.maximum:
            test.why = f"{LIMITED} the maximum of {test.maximum} trials"
        elif test.kept < test.minimum:
            if test.program and test.kept == 1:
                self._clean_up_if_refused(self.world.check_rule, test)
            return False
        elif test.budget_s is not None and self.world.spent_s(test) >= test.budget_s:
            test.why = f"{LIMITED} the time budget of {test.budget_s:g} s"
        elif not test.program:
            test.why = "as many as requested"
        elif (test.kept - test.minimum) % (test.step or 1) == 0:
            enough, why = self._clean_up_if_refused(self.world.stop_decision, test, scope)
            test.why = why if enough else ""
        return bool(test.why)

    def _clean_up_if_refused(self, do: Callable[..., Answer], *arguments: Any) -> Answer:
        """Result of `do`. If the stop rule cannot be evaluated, the script ends here, cleaned up."""
        try:
            return do(*arguments)
        except EtudeError:
            for party in self._parties():
                self._post(party.test, party.scope)
            raise

    def _finish(self, *parties: Party) -> None:
        """Finish after the last trial of a test, or of an INTERLEAVE."""
        for party in parties:
            if not self.world.end_reason(party.test):
                self._post(party.test, party.scope)
                self.world.end_test(party.test)
        if self.state.interleave is not None:
            self.state.counter = self.program.instructions[self.state.interleave.start].target + 1
        self.state.test = self.state.interleave = None
        self._ending = False
        self.done = self.done or self._unwinding
        self._here()
        self.world.save(self.state)

    def _post(self, test: RunningTest, scope: Scope) -> None:
        lines, test.postcleanup = test.postcleanup, []
        for line in lines:
            reason = self.world.hook("POSTCLEANUP", line, test, scope)
            fastfail = None if self._ending else self.state.fastfail
            if reason is not None and fastfail is not None and not self.world.stopped:
                self.world.failed(reason, fastfail, test, scope)
                raise CommandFailed(f"{reason}; FASTFAIL: everything was stopped and left unchanged")
            if reason is not None:
                self.world.warn(reason)

    # --- INTERLEAVE -------------------------------------------------------------------------------

    def _interleave(self, _: Instruction, text: str) -> None:
        self.state.groups += 1
        self.state.interleave = Interleave(self.state.counter - 1, self.state.groups)

    def _end_interleave(self, instruction: Instruction, _: str) -> None:
        """Begin the first block: all tests are known now."""
        running = self.state.interleave
        assert running is not None, "the parser closes nothing that is not open"
        if running.parties:
            for party in running.parties:
                self._resume_test(party.test)
            self._next_turn(running)
        else:
            self.state.interleave = None

    def _begin_block(self, running: Interleave) -> None:
        running.block += 1
        order = [index for index, party in enumerate(running.parties) if not _given_up(party.test)]
        random.Random(f"{self.state.seed}:{running.group}:{running.block}").shuffle(order)
        for place, index in enumerate(order):
            test = running.parties[index].test
            test.block, test.order = running.block, place
        running.order = order

    def _next_turn(self, running: Interleave, *, resumed: bool = False) -> None:
        """Begin the next item: a trial of the block that is not on disk, another block, or the line after DONE.

        `resumed`: a trial that is under way and not on disk continues.
        """
        moved = not resumed
        while not self._ending:
            while running.order and self._is_on_disk(running):
                running.order.pop(0)
                moved = True
            if running.order:
                break
            begun = max(self._blocks_on_disk.get(party.test.name, 0) for party in running.parties)
            if running.block and running.block >= begun and self._block_is_last(running):
                self._ending = True
                running.order = [i for i, party in enumerate(running.parties) if not party.test.prepared]
            else:
                self._begin_block(running)
        self._here()
        if running.order and moved:
            self._begin_trial(self._running())
        elif not running.order:
            self._finish(*running.parties)

    def _is_on_disk(self, running: Interleave) -> bool:
        test = running.parties[running.order[0]].test
        return self._blocks_on_disk.get(test.name, 0) >= running.block

    def _block_is_last(self, running: Interleave) -> bool:
        enough = [_given_up(party.test) or self._block_enough(party) for party in running.parties]
        for party in running.parties if not all(enough) else ():
            party.test.why = party.test.why if _given_up(party.test) else ""
        return all(enough)

    def _block_enough(self, party: Party) -> bool:
        party.test.why = ""
        return self._has_enough(party.test, party.scope)

    # --- after a signal ---------------------------------------------------------------------------

    def _unwind(self) -> None:
        """Run only the clean-up lines of the trial under way, after a signal."""
        test = self.state.running
        if test is None:
            self.done = True
            return
        self._unwinding = True
        if not test.failed:
            test.failed, test.failed_at = "cancelled", "EXEC"

    def _give_back(self) -> None:
        """Clean up at the end of the last trial, and place the counter where the test can be resumed."""
        for party in self._parties():
            self._post(party.test, party.scope)
        reset_trial(self.state)
        self.state.counter = self._running().begin + 1
        self.done = True

    def _parties(self) -> Sequence[Party]:
        """The test under way, or all of its INTERLEAVE, each with its scope."""
        running = self.state.interleave
        return [Party(self._running(), self._scope)] if running is None else running.parties


def _given_up(test: RunningTest) -> bool:
    return test.why.startswith(GIVEN_UP)
