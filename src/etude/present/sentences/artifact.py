"""Words of an artifact appendix: its parts in the order of the committees' templates, and the badges' check lists."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from etude.claims.artifact import Badge, Check, Item, checks_of, disk_bytes, machines_of
from etude.claims.bound import Bound
from etude.claims.claims_file import FULL, Experiment, Needs
from etude.claims.run import Result
from etude.claims.stored_claims import StoredClaims, packed_inputs
from etude.present.sentences.claims import found_text
from etude.units.formatting import counted, duration, percent, quantity
from etude.version import __version__


@dataclass(frozen=True)
class Part:
    """One part of the appendix, whatever it is written in."""

    kind: Literal["heading", "subheading", "text", "items", "command"]
    lines: tuple[str, ...]


CLAIM = "Claim"
MEASURED = "Measured"
OPEN = "What would decide it"
CAVEATS = "Not checked, or chosen by the file"
HOW = "How it was measured"
MACHINE = "Machine"
COMMANDS = "Commands of the experiments"
FILES = "Programs, shared libraries and inputs, by digest"
LISTS = "Check lists of the artifact badges"
LISTS_CAPTION = "yes: the files show it; authors: nothing in the files shows it"
BADGES: Mapping[Badge, str] = {
    "available": "Artifacts Available",
    "functional": "Artifacts Evaluated – Functional",
    "reproduced": "Results Reproduced",
}
ITEMS: Mapping[Item, str] = {
    "archive": "A public archive has this bundle under a fixed version or a DOI",
    "read me": "A read-me file describes it; the authors add the reference to the paper",
    "license": "A license file allows comparison",
    "environment": "The supported environment is recorded",
    "one command": "One command runs everything, without manual steps",
    "small example": "A small scale serves as a minimal example",
    "portable": "No command names a path or an address of the authors' machines",
    "components": "All components of the paper are there, under the paper's names, and explained",
    "exact machine": "The machine of the authors is recorded: kernel, CPU, settings, programs",
    "commands": "Each claim has its exact command",
    "resources": "Each claim has its time and disk space",
    "figures": "Each claim names its figure or table",
    "verdicts": "Each claim is supported on the authors' machine",
    "elsewhere": "Each claim is supported on another machine (etude claims verify)",
    "dependencies": "External dependencies come from well-known sources, with changes apart",
}
MARKS = {True: "yes", False: "no", None: "authors"}
"""State of an item: shown by the files, not met, or to be seen to by the authors."""


def parts(stored: StoredClaims) -> Iterator[Part]:
    """The whole appendix."""
    results = stored.results()
    names = list(stored.state.experiments)
    bundle = f"{_root(stored)}.tar.gz"
    yield _heading("Abstract")
    yield _text(
        f"The artifact decides {counted(len(results), 'claim')} of {stored.file.title} by measurement with Étude "
        f"{__version__}. Each claim is a bound on a measured value; its interval decides it. The probability that any "
        f"verdict is wrong is at most {percent(1.0 - stored.file.confidence)}."
    )
    yield _heading("Description and requirements")
    yield _subheading("How to access")
    yield _text(
        "[The authors state the DOI or the archive's address, and the SHA-256 that etude bundle printed.]"
    )
    yield _subheading("Hardware dependencies")
    yield _items(_hardware(stored, names))
    yield _subheading("Software dependencies")
    yield _items(_software(stored, names))
    yield _subheading("Benchmarks and inputs")
    inputs, outside = packed_inputs(stored)
    yield _items(
        [
            *(f"{name} (in the bundle)" for name in inputs),
            *(f"{name} (not in the bundle)" for name in outside),
        ]
    )
    yield _heading("Set-up")
    yield _text("Install Étude and the programs above. Check the bundle, and unpack it:")
    yield _command(f"etude bundle --verify {bundle}", f"tar xf {bundle}")
    yield _heading("Evaluation workflow")
    yield _text(
        "One command compares the machines, runs every claim again, and prints both results side by side:"
    )
    yield _command(f"etude claims verify {bundle} -o ours")
    yield _subheading("Major claims")
    yield _items([_claim(number, result, names) for number, result in enumerate(results, 1)])
    yield _subheading("Experiments")
    for number, name in enumerate(names, 1):
        yield from _experiment(stored, number, name, results)
    yield _subheading("How to read the results")
    yield _items(
        [
            "supported: the whole interval lies within the bound. Exit code 0 if all claims are.",
            "refuted: the whole interval lies outside, or a compared program printed something else. Exit code 1.",
            "undecided: the interval holds the bound; the output names the trials that would decide it. Exit code 8.",
            "Absolute times differ between machines. Ratios and directions should not: the table has the ratio of both "
            "results with its interval.",
        ]
    )
    yield _heading("Check lists")
    yield from _lists(checks_of(stored, results))


def _root(stored: StoredClaims) -> str:
    """Name of the bundle of this directory, without its suffix."""
    return f"{stored.directory.resolve().name}-bundle"


def _heading(text: str) -> Part:
    return Part("heading", (text,))


def _subheading(text: str) -> Part:
    return Part("subheading", (text,))


def _text(text: str) -> Part:
    return Part("text", (text,))


def _command(*lines: str) -> Part:
    return Part("command", lines)


def _items(lines: Sequence[str]) -> Part:
    return Part("items", tuple(lines) or ("None.",))


def _hardware(stored: StoredClaims, names: Sequence[str]) -> list[str]:
    machine: Mapping[str, Any] = next(iter(machines_of(stored).values()), {})
    needs = [stored.file.experiments[name].needs for name in names]
    found = [f"Measured on: {line}" for line in [machine_line(machine)] if line]
    if memory := max((n.memory for n in needs), default=0):
        found.append(f"Memory: {quantity(memory, 'B')} or more")
    if disk := max((n.disk for n in needs), default=0):
        found.append(f"Free disk space: {quantity(disk, 'B')} or more")
    return found


def machine_line(machine: Mapping[str, Any]) -> str:
    """A machine in a line: CPU, memory, system, kernel."""
    cpu, memory, system = (machine.get(part) or {} for part in ("cpu", "memory", "system"))
    known = (
        cpu.get("model"),
        f"{cpu['online']} CPUs" if cpu.get("online") else None,
        f"{quantity(memory['total_bytes'], 'B')} memory" if memory.get("total_bytes") else None,
        system.get("distribution"),
        f"Linux {system['kernel_release']}" if system.get("kernel_release") else None,
    )
    return ", ".join(str(each) for each in known if each)


def _software(stored: StoredClaims, names: Sequence[str]) -> list[str]:
    needs: list[Needs] = [stored.file.experiments[name].needs for name in names]
    programs = dict.fromkeys(program for n in needs for program in n.programs)
    kernel = dict.fromkeys(feature for n in needs for feature in n.kernel)
    return [
        f"Étude {__version__}",
        *(f"Program: {program}" for program in programs),
        *(f"Kernel: {feature}" for feature in kernel),
        *(["Root"] if any(n.root for n in needs) else []),
    ]


def _claim(number: int, result: Result, names: Sequence[str]) -> str:
    figure = f" ({result.claim.figure})" if result.claim.figure else ""
    place = names.index(result.claim.experiment) + 1
    return f"(C{number}, {result.claim.id}): {result.claim.text}{figure}. Experiment E{place} decides it."


def _experiment(stored: StoredClaims, number: int, name: str, results: Sequence[Result]) -> Iterator[Part]:
    experiment, done = stored.file.experiments[name], stored.state.experiments[name]
    disk = experiment.needs.disk + (disk_bytes(stored.directory / name) if done.looks else 0)
    time = duration(done.seconds) if done.looks else "not measured"
    yield _text(
        f"Experiment (E{number}): {name} [1 human-minute + {time} of computing + {quantity(disk, 'B')} of disk]"
    )
    yield _items(list(_run_lines(experiment)))
    ids = [r.claim.id for r in results if r.claim.experiment == name]
    scale = [] if stored.file.scale == FULL else ["--scale", stored.file.scale]
    line = ["etude", "claims", "run", stored.file.path.name, *ids, *scale, "-o", f"ours-{name}"]
    yield _command(f"cd {_root(stored)}/claims", shlex.join(line))
    yield _items(
        [f"Expected: {line}" for r in results if r.claim.experiment == name for line in _expected(r)]
    )


def _run_lines(experiment: Experiment) -> Iterator[str]:
    for test, line in experiment.commands.items():
        yield f"{test}: {line}"
    if experiment.file is not None:
        yield f"{experiment.kind}: {experiment.file.name}"
    if experiment.simulate:
        yield f"simulated server: {experiment.simulate}"
    for hook, line in experiment.hooks.items():
        yield f"{hook} (Étude runs it): {line}"
    if experiment.cool != "none":
        yield f"cache before each trial: {experiment.cool}"
    yield f"{counted(experiment.trials, 'trial')} of each test at most"


def _expected(result: Result) -> list[str]:
    return [f"{found_text(f, result.level)} ({result.status})" for f in result.findings] or [
        f"{bound.text} (not measured)" for bound in result.claim.hold
    ]


def _lists(checks: Sequence[Check]) -> Iterator[Part]:
    for badge, title in BADGES.items():
        yield _subheading(title)
        yield _items([check_line(each) for each in checks if each.badge == badge])


def check_line(check: Check) -> str:
    """An item with its state."""
    detail = f": {check.detail}" if check.detail else ""
    return f"[{MARKS[check.met]}] {ITEMS[check.item]}{detail}"


def figure_caption(bound: Bound) -> str:
    """The caption of a claim's figure."""
    return f"Value with the interval that decides, against the bound {bound.text}"
