"""The plan that stored results are run again by: that of `etude bench`, or one with the tests of a script.

A test with several EXEC lines becomes one command: a shell that runs them one after the other.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from etude.errors import UsageError
from etude.experiment.origin import original_directory
from etude.experiment.plan import Plan, make_plan, plan_to_resume
from etude.experiment.test import Test
from etude.osutil.trust import check_for_root
from etude.results.reader import read_experiment
from etude.results.results import machine_member
from etude.script.arguments import parse_exec, parse_on_hosts
from etude.script.check import PlannedTest
from etude.script.directive_words import command_words
from etude.script.environment import variables
from etude.script.run import ScriptOptions, stored_script
from etude.script.state import Scope


def stored_plan(directory: Path, names: Sequence[str], count: int) -> Plan:
    """The plan of these results, with commands that can be run here.

    names, count: as for `explainable`; other tests of a script have no command.

    Raises:
        InputError: the experiment cannot be run again; UsageError: a test of a script is no single command.
    """
    document = read_experiment(directory)
    source = str(directory / "experiment.json")
    if document["plan"].get("kind") == "script":
        check_for_root(source)
        with original_directory(directory, document):
            asked = stored_script(document, int(document["plan"].get("seed") or 0), source)
            plan = script_plan(asked, directory, names, count)
    else:
        plan = plan_to_resume(document, source)
    where = machine_member(document, "directory", "path")
    return replace(plan, tests=tuple(replace(test, directory=test.directory or where) for test in plan.tests))


def script_plan(asked: ScriptOptions, results: Path, names: Sequence[str] = (), count: int = 2) -> Plan:
    """A plan with the tests of a script. Raises UsageError: one of `names` is no single command on this machine."""
    outline = asked.dry_run()
    for directive, line in outline.lines:
        if directive != "CHECKPOINT":
            raise UsageError(f"{asked.program.path}: {directive} {line}: is not repeated under instruments")
    chosen = names or [test.name for test in outline.tests[:count]]
    tests = [
        _test(each, asked.program.path, results) if each.name in chosen else Test(each.name, ("false",))
        for each in outline.tests
    ]
    return make_plan(tests, trials=1, seed=asked.seed, counters=asked.counters, masks=asked.masks)


def _test(planned: PlannedTest, script: str, results: Path) -> Test:
    commands: list[str] = []
    words: tuple[str, ...] = ()
    hooks: dict[str, list[str]] = {}
    for directive, line in planned.lines:
        placed = parse_exec(line) if directive == "EXEC" else parse_on_hosts(line)
        if placed.hosts or placed.accepted:
            raise UsageError(f"{planned.name}: {directive} {line}: is not repeated under instruments")
        if directive == "EXEC":
            words = command_words(placed.line)
            commands.append(shlex.join(words))
        elif directive == "SETUP" and commands:
            raise UsageError(
                f"{planned.name}: SETUP {line}: between two EXECs: is not repeated under instruments"
            )
        else:
            hooks.setdefault(directive, []).append(f"({placed.line}\n)")
    if planned.boot:
        raise UsageError(f"{planned.name}: BOOT {planned.boot}: is not repeated under instruments")
    around = variables(
        Scope(environment=planned.environment), "EXEC", None, os.environ, results.absolute(), script
    )
    return Test(
        planned.name,
        words if len(commands) == 1 else ("/bin/sh", "-ec", "\n".join(commands)),
        environment={**around, "APTEST": planned.name, "APEPOCH": "1"},
        workers=planned.threads,
        timeout_s=planned.timeout_s and planned.timeout_s * len(commands),
        cool=planned.cache.partition(" of ")[0],
        data=planned.data,
        setup=_joined(hooks.get("PRESETUP")),
        prepare=_joined(hooks.get("SETUP")),
        conclude=_joined(hooks.get("CLEANUP")),
        cleanup=_joined(hooks.get("POSTCLEANUP")),
    )


def _joined(lines: Sequence[str] | None) -> str | None:
    return " && ".join(lines) if lines else None
