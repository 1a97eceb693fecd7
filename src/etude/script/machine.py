"""The step machine: one instruction after the other, all state in `State`, all effects through `World`.

A test's body is run once a trial, from TEST to its DONE, in the order in which it is written (Auto-pilot paper,
section 3.1). Between any two steps the state may be saved, and a new machine goes on from it.
"""

from __future__ import annotations

import os
import random

from etude.errors import CommandFailed
from etude.script import arguments
from etude.script.disk import engine_line, parse_disk
from etude.script.flow import Flow
from etude.script.program import Instruction, Program
from etude.script.state import Interleave, Party, Running, Scope, State, forget_trial, release
from etude.script.world import World

MOST_TRIALS = 1000
"""Trials of a test with a stop program that names no MAX."""
HOSTS_FILE = "HOSTSFILE"
"""The variable that HOSTS sets."""
FAILURES_IN_A_ROW = 3
"""After so many failed trials a test is given up."""


class Machine(Flow):
    """Runs `program` from `state`."""

    def __init__(self, program: Program, state: State, world: World) -> None:
        super().__init__(program, state, world)
        parties = [party.test for party in state.interleave.parties] if state.interleave else []
        if HOSTS_FILE in state.here.variables:
            world.hosts(state.here.variables[HOSTS_FILE])
        for test in [*parties, *([state.test] if state.test else [])]:
            world.begin_test(test)

    def _stop(self, _: Instruction, text: str) -> None:
        if self.state.running is not None:
            self.world.end_trial(self.state.running)
        self._end()

    def _end(self) -> None:
        self.done = True
        given_up = self.state.given_up
        if given_up:
            raise CommandFailed(f"given up, their trials kept failing: {', '.join(given_up)}")

    # --- what is run outside a test ---------------------------------------------------------------

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
        if test is None or not test.failed or copied.back:  # what a failed trial has left is wanted
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
        if not words or (words == [arguments.LOUD] and not self.state.quiet):
            return
        self.state.quiet = [] if words == [arguments.LOUD] else [*self.state.quiet, *words]
        self._failed("QUIET", self.world.quiet(() if words == [arguments.LOUD] else words))

    # --- tests ------------------------------------------------------------------------------------

    def _test(self, instruction: Instruction, text: str) -> None:
        header = arguments.parse_test(text)
        state, scope = self.state, self._scope
        maximum = header.maximum
        if maximum is None and header.program:
            maximum = max(MOST_TRIALS, header.minimum)
        test = Running(
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
        self.world.begin_test(test)
        self.world.safe_point(state)

    def _running(self) -> Running:
        test = self.state.running
        assert test is not None, "the parser lets nothing of a test stand outside one"
        return test

    def _purpose(self, _: Instruction, text: str) -> None:
        self._running().purpose = text

    def _expect(self, _: Instruction, text: str) -> None:
        self._running().expect = text

    def _metric(self, _: Instruction, text: str) -> None:
        metric, test = [*filter(None, arguments.parse_metric(text))], self._running()
        if metric not in test.metrics:
            test.metrics.append(metric)

    def _cache(self, _: Instruction, text: str) -> None:
        test = self._running()
        test.cache, data = arguments.parse_cache(text)
        test.data = list(data)
        if test.cache == "warm" and not test.warmed and not test.rows:
            test.set_aside = True
            if test.made == 0 and test.trial == 1:
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
        """At its place in each trial, as SETUP; with ONCE before the first, as PRESETUP."""
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

    def _restart_first(self, test: Running) -> None:
        """Restart the machine once in a trial that needs it: behind what PRESETUP made, before all that is mounted.

        Raises:
            Restarting: it goes on with this very line.
        """
        if test.failed or not self.world.needs_restart(test):
            return
        counter, test.booted = self.state.counter, True
        self.state.counter = counter - 1
        self.world.restart(test.boot, self.state)
        self.state.counter = counter

    def _cleanup(self, _: Instruction, text: str) -> None:
        test = self._running()
        reason = self.world.hook("CLEANUP", text, test, self._scope)
        if reason is not None:
            self._failed("CLEANUP", reason)

    def _postcleanup(self, _: Instruction, text: str) -> None:
        self._running().postcleanup.append(text)

    def _hook(self, point: str, text: str) -> None:
        test = self._running()
        if not test.failed:
            self._failed(point, self.world.hook(point, text, test, self._scope))

    def _failed(self, point: str, reason: str | None) -> None:
        """What follows from a failure: all stops, or the trial has failed.

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
        raise CommandFailed(f"{reason}; FASTFAIL: all was stopped and left as it is")

    def _end_test(self, instruction: Instruction, _: str) -> None:
        test = self._running()
        self.world.end_trial(test)
        if self._unwinding:
            self._give_back()
            return
        again = test.set_aside and not test.failed
        self._count(test)
        if again:
            self._begin_trial(test)
        elif self.state.interleave is not None:
            self._end_turn(self.state.interleave, test)
        elif self._has_enough(test, self._scope):
            self._finish(test, self._scope)
            self.state.test = None
        else:
            self._begin_trial(test)
        self.world.safe_point(self.state)

    def _count(self, test: Running) -> None:
        """Note how the trial ended, and make the test ready for its next one."""
        if test.failed:
            test.failed_in_a_row += 1
        else:
            test.failed_in_a_row = 0
            test.kept += not test.set_aside
        test.made += not test.set_aside
        if test.failed_in_a_row >= FAILURES_IN_A_ROW or (test.failed and test.failed_at == "PRESETUP"):
            test.why = f"given up: {test.failed}"
            self.state.given_up.append(test.name)
        test.prepared = True
        test.warmed = test.warmed or (test.set_aside and not test.failed)
        test.trial += 1
        forget_trial(test)

    def _begin_trial(self, test: Running) -> None:
        test.postcleanup = []
        self.state.counter = test.begin + 1

    def _has_enough(self, test: Running, scope: Scope) -> bool:
        """Whether no further trial is needed; says why in `test.why`."""
        if test.why:
            return True
        if test.maximum is not None and test.made >= test.maximum:
            test.why = f"the maximum of {test.maximum} trials"
        elif test.kept < test.minimum:
            return False
        elif test.budget_s is not None and self.world.measured_s(test) >= test.budget_s:
            test.why = f"the time budget of {test.budget_s:g} s"
        elif not test.program:
            test.why = "as many as asked"
        elif (test.kept - test.minimum) % (test.step or 1) == 0:
            enough, why = self.world.ask(test, scope)
            test.why = why if enough else ""
        return bool(test.why)

    def _finish(self, test: Running, scope: Scope) -> None:
        """Once after a test's last trial."""
        self._post(test, scope)
        self.world.end_test(test)

    def _post(self, test: Running, scope: Scope) -> None:
        lines, test.postcleanup = test.postcleanup, []
        for line in lines:
            reason = self.world.hook("POSTCLEANUP", line, test, scope)
            if reason is not None and self.state.fastfail is not None and not self.world.stopped:
                self.world.failed(reason, self.state.fastfail, test, scope)
                raise CommandFailed(f"{reason}; FASTFAIL: all was stopped and left as it is")
            if reason is not None:
                self.world.warn(reason)

    # --- INTERLEAVE -------------------------------------------------------------------------------

    def _interleave(self, _: Instruction, text: str) -> None:
        self.state.groups += 1
        self.state.interleave = Interleave(self.state.counter - 1, self.state.groups)

    def _end_interleave(self, instruction: Instruction, _: str) -> None:
        """All its tests are known: begin the first block."""
        running = self.state.interleave
        assert running is not None, "the parser closes nothing that is not open"
        if running.parties:
            for party in running.parties:
                self.world.begin_test(party.test)
            self._begin_block(running)
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
        self._begin_turn(running)

    def _begin_turn(self, running: Interleave) -> None:
        test = running.parties[running.order[0]].test
        self._here()
        self._begin_trial(test)

    def _end_turn(self, running: Interleave, test: Running) -> None:
        """The next test of the block; after the last, whether another block is needed."""
        if len(running.order) > 1:
            running.order.pop(0)
            self._begin_turn(running)
            return
        enough = [_given_up(party.test) or self._block_enough(party) for party in running.parties]
        if not all(enough):
            for party in running.parties:
                party.test.why = party.test.why if _given_up(party.test) else ""
            self._begin_block(running)
            return
        running.order = []
        for party in running.parties:
            self._finish(party.test, party.scope)
        self.state.counter = self.program.instructions[running.start].target + 1
        self.state.interleave = None
        self._here()

    def _block_enough(self, party: Party) -> bool:
        party.test.why = ""
        return self._has_enough(party.test, party.scope)

    # --- after a signal ---------------------------------------------------------------------------

    def _unwind(self) -> None:
        """A signal has come: what is left of the trial under way only cleans up."""
        test = self.state.running
        if test is None:
            self.done = True
            return
        self._unwinding = True
        if not test.failed:
            test.failed, test.failed_at = "cancelled", "EXEC"

    def _give_back(self) -> None:
        """The end of the last trial: clean up what is set up, and stand where the test can go on."""
        running = self.state.interleave
        parties = [Party(self._running(), self._scope)] if running is None else running.parties
        for party in parties:
            self._post(party.test, party.scope)
        release(self.state)
        self.state.counter = self._running().begin + 1
        self.done = True


def _given_up(test: Running) -> bool:
    return test.why.startswith("given up")
