"""Instructions by function, counted exactly by a simulator: for machines without hardware counters.

Source: Cachegrind's output file format, Valgrind 3.19 manual, section 5.7. Valgrind simulates user space on one CPU:
the kernel's instructions, and waiting, are not counted.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_high
from typing import Any

from etude.codec import decoded
from etude.errors import InputError, MachineRefuses
from etude.experiment import run as experiments
from etude.experiment.plan import RuleSpec
from etude.osutil.files import replace_file
from etude.results.reader import read_experiment
from etude.why.contributions import MOST
from etude.why.instrumented_pairs import LARGEST, NAME
from etude.why.instrumented_run import RAW, alone_in, raw_place, run_instrumented, unfinished_plan
from etude.why.instruments import under

PLACE = "instructions"
"""Directory of the counts in that of the pairs."""
STATE, FORMAT, VERSION = "instructions.json", "etude-why-instructions", 1
RUNS = 2
"""Number of runs of each test, which show whether the counts vary."""

Function = tuple[str, str]
"""Program, function."""
Instructions = Mapping[Function, int]


@dataclass(frozen=True)
class InstructionDifference:
    """Instructions of one function, or of all; medians of the runs."""

    program: str
    function: str
    a: int
    b: int


@dataclass(frozen=True)
class InstructionDifferences:
    """Instructions of two tests."""

    whole: InstructionDifference
    listed: tuple[InstructionDifference, ...]
    """Functions whose counts differ between all runs of one test and all of the other, the most first."""
    exact: bool
    """True if all runs of a test have the same counts."""


def count_instructions(pairs: Path, observe: experiments.Observer) -> InstructionDifferences:
    """Run both tests of finished pairs under the simulator, RUNS times each, or read what that has left.

    pairs: directory of the pairs; the counts are put into `instructions` in it.

    Raises:
        MachineRefuses: there is no simulator; CommandFailed: a command fails under it; InputError: the pairs, or the
        counts, are invalid.
    """
    place = pairs / PLACE
    path = place / STATE
    if not path.exists():
        check_simulator()
        plan = unfinished_plan(pairs, NAME)
        made = [
            replace(
                under("instructions", test, raw_place(place, side, 0)),
                timeout_s=None,
                setup=test.setup,
                cleanup=test.cleanup,
            )
            for side, test in enumerate(plan.tests[:2])
        ]
        plan = replace(plan, tests=tuple(made), rule=RuleSpec("fixed-count", {"count": RUNS}))
        sides = {test.name: raw_place(place, side, 0) for side, test in enumerate(made)}
        command = [*read_experiment(pairs)["command_line"], "--instructions"]
        with alone_in(place):
            run_instrumented(plan, place, sides, command, observe)
            counts = [
                [_in_directory(each) for each in sorted(raw.iterdir()) if each.is_dir()]
                for raw in sides.values()
            ]
            replace_file(path, json.dumps(_document(counts), ensure_ascii=False).encode())
            shutil.rmtree(place / RAW, ignore_errors=True)
    return read_instructions(pairs)


def check_simulator() -> None:
    """Raise MachineRefuses if there is no simulator."""
    if shutil.which("valgrind") is None:
        raise MachineRefuses(
            "no program valgrind: instructions cannot be counted; install the Debian package valgrind"
        )


def read_instructions(pairs: Path) -> InstructionDifferences:
    """The counts beside pairs. Raises InputError: there are none, or they are invalid."""
    path = pairs / PLACE / STATE
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}; was it edited?") from None
    stored = decoded(_Stored, told, str(path))
    if any(not 0 <= n < LARGEST for side in stored.runs for run in side for *_, n in run):
        raise InputError(f"{path}: has numbers below 0 or too large; was it edited?")
    a, b = ([{(p, f): n for p, f, n in run} for run in side] for side in stored.runs)
    if stored.format != FORMAT or stored.version != VERSION or not a or not b:
        raise InputError(f"{path}: expected {FORMAT}, version {VERSION}, with runs of both tests")
    return instruction_differences(a, b)


@dataclass(frozen=True)
class _Stored:
    format: str
    version: int
    runs: tuple[list[list[tuple[str, str, int]]], list[list[tuple[str, str, int]]]]


def _document(sides: Sequence[Sequence[Instructions]]) -> dict[str, Any]:
    runs = [[[[*key, count] for key, count in sorted(run.items())] for run in side] for side in sides]
    return {"format": FORMAT, "version": VERSION, "runs": runs}


def _in_directory(directory: Path) -> Instructions:
    """The counts of all processes of a run."""
    counts: Counter[Function] = Counter()
    for path in directory.iterdir():
        counts.update(instructions_in(path.read_text("utf-8", "replace").splitlines(), str(path)))
    return counts


def instructions_in(lines: Iterable[str], where: str) -> Instructions:
    """The counts in a file of Cachegrind. Raises InputError: it is none, or cut short."""
    found: Counter[Function] = Counter()
    program, function, summary = "", "", None
    for number, line in enumerate(lines, 1):
        if line[:1].isdigit():
            try:
                found[program, function] += int(line.split()[1])
            except (IndexError, ValueError):
                raise InputError(
                    f"{where}:{number}: {line!r}: expected a line's number and its count"
                ) from None
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("cmd:"):
            program = line[4:].split()[0].rpartition("/")[2] if line[4:].split() else ""
        elif line.startswith("summary:"):
            summary = line
    if summary is None:
        raise InputError(f"{where}: no summary: expected a whole file of Cachegrind")
    return found


def instruction_differences(a: Sequence[Instructions], b: Sequence[Instructions]) -> InstructionDifferences:
    """Functions whose numbers of instructions differ."""
    listed = []
    for key in sorted({key for run in (*a, *b) for key in run}):
        x, y = ([run.get(key, 0) for run in side] for side in (a, b))
        if max(x) < min(y) or max(y) < min(x):
            listed.append(InstructionDifference(*key, median_high(x), median_high(y)))
    listed.sort(key=lambda each: -abs(each.b - each.a))
    whole = InstructionDifference(
        "", "", *(median_high([sum(run.values()) for run in side]) for side in (a, b))
    )
    exact = all(dict(run) == dict(side[0]) for side in (a, b) for run in side)
    return InstructionDifferences(whole, tuple(listed[:MOST]), exact)
