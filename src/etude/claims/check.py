"""Problems of an experiment of claims on this machine: missing files and programs, needs that are not met."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from etude.claims.claims_file import ClaimsFile, Experiment
from etude.errors import EtudeError, InputError, MachineRefuses
from etude.machine.snapshot.programs import HERE, Command, programs
from etude.peak.sources import of_harness, of_simulation
from etude.script.run import read_script
from etude.surface.spec import read_spec
from etude.toml_config import line_of
from etude.units.parsing import size_text


def problems(file: ClaimsFile, experiment: Experiment) -> Iterator[EtudeError]:
    """One error for each thing that is missing here, with the line of the claims file; nothing is run."""
    for key, found in (*_of_kind(experiment), *_of_needs(experiment)):
        where = f"{file.path}:{_line(file, experiment, key)}: experiment {experiment.name}"
        found.args = (f"{where}: {found}",)
        yield found


def _line(file: ClaimsFile, experiment: Experiment, key: str) -> int:
    """The line of a key, of the scale's own table where that has it."""
    table = f"experiment.{experiment.name}"
    own = line_of(file.text, f"{table}.{experiment.scale}", key)
    begins = line_of(file.text, f"{table}.{experiment.scale}", None)
    return own if own > begins > line_of(file.text, table, None) else line_of(file.text, table, key)


def _of_kind(experiment: Experiment) -> Iterator[tuple[str, EtudeError]]:
    """Problems of the files and programs that it runs."""
    if experiment.extends:
        yield from (("commands", each) for each in _of_commands(experiment))
    checks: dict[str, Callable[[], object]] = {
        "peak": lambda: (
            of_simulation(experiment.simulate) if experiment.simulate else of_harness(str(experiment.file))
        ),
        "script": lambda: read_script(str(experiment.file), assignments(experiment)).dry_run(),
        "surface": lambda: read_spec(experiment.file or Path()),
    }
    if experiment.kind in checks:
        try:
            checks[experiment.kind]()
        except EtudeError as error:
            yield "simulate" if experiment.simulate else experiment.kind, error
    for path in experiment.inputs:
        if not os.access(path, os.R_OK) or not (path.is_file() or path.is_dir()):
            key = "replay" if experiment.kind == "replay" and path.is_absolute() else "inputs"
            yield key, InputError(f"{path} cannot be read: expected an input of the experiment")


def assignments(experiment: Experiment) -> list[str]:
    """The variables of a script, as its command line has them."""
    return [f"{name}={value}" for name, value in experiment.variables.items()]


def _of_commands(experiment: Experiment) -> Iterator[EtudeError]:
    for test in experiment.tests():
        found = programs(HERE, [Command(test.command, directory=str(experiment.place))], {"PATH": _path()})
        for name, program in found.items():
            if program is None and not (experiment.makes_programs and "/" in name):
                yield MachineRefuses(
                    f"test {test.name}: no program {name}: install it, or correct the command"
                )


def _path() -> str:
    return os.environ.get("PATH") or os.defpath


def _of_needs(experiment: Experiment) -> Iterator[tuple[str, EtudeError]]:
    """Requirements that this machine does not meet."""
    needs = experiment.needs
    if needs.root and os.geteuid() != 0:
        yield "needs", MachineRefuses("needs root: run it as root")
    free = shutil.disk_usage(experiment.place).free
    if free < needs.disk:
        yield "needs", MachineRefuses(f"needs {size_text(needs.disk)} of disk: {size_text(free)} are free")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < needs.memory:
        yield (
            "needs",
            MachineRefuses(f"needs {size_text(needs.memory)} of memory: the machine has {size_text(memory)}"),
        )
    for program in needs.programs:
        if shutil.which(program) is None:
            yield "needs", MachineRefuses(f"needs the program {program}: install it")
    for feature in needs.kernel:
        if not _has_kernel(feature):
            yield (
                "needs",
                MachineRefuses(f"needs {feature} of the kernel: load the module, or use another kernel"),
            )


def _has_kernel(feature: str) -> bool:
    """True for a known file system or for a module that is loaded, built in or can be loaded."""
    with open("/proc/filesystems", encoding="utf-8") as file:
        if feature in (line.split()[-1] for line in file if line.strip()):
            return True
    if Path("/sys/module", feature.replace("-", "_")).is_dir():
        return True
    modules = Path("/lib/modules", os.uname().release)
    names = {feature.replace("-", "_"), feature.replace("_", "-")}
    for index in ("modules.builtin", "modules.dep"):
        try:
            lines = (modules / index).read_text("utf-8").splitlines()
        except OSError:
            continue
        if any(Path(line.partition(":")[0]).name.partition(".")[0] in names for line in lines):
            return True
    return False
