"""Results of `etude run`, written by the project's own script machine: engines that let no time pass."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from etude.errors import EtudeError
from etude.experiment.bench import Event
from etude.experiment.monitoring import Monitoring
from etude.experiment.progress import Progress
from etude.results.blocks import Block, TrialBlock, to_line
from etude.script.run import read_script, resume_script, run_script
from golden.making.benches import at, times
from golden.making.byhand import by_hand
from golden.making.machines import homeless, settle
from support import monitored, pages
from support.builders import measurement
from support.fakes import World

PLAIN = """\
# Two file systems, one after the other.
VAR TRIALS=4
FOREACH FS ext4 xfs
  TEST copy:%FS% %TRIALS%
    PURPOSE How long does a copy take on %FS%?
    EXPECT elapsed < 1 s
    PRESETUP mkfs %FS%
    SETUP mount %FS%
    EXEC copy %FS%
    METRIC rate rate ([0-9.]+) MB/s
    CLEANUP umount %FS%
  DONE
DONE
"""
INTERLEAVED = """\
FOR N=1 TO 2
INTERLEAVE
TEST old:%N% 5
EXEC old %N%
DONE
TEST new:%N% 5
EXEC new %N%
DONE
DONE
DONE
"""
THREADS = """\
FOREACH T 1 2 4
THREADS=%T%
TEST work:%T% 3
EXEC first
EXEC second
DONE
DONE
"""
FAILING = """\
TEST broken 4
EXEC broken
DONE
TEST fine 4
CACHE warm
EXEC fine
DONE
"""


def script(path: Path, text: str, world: World, *assignments: str, **options: Any) -> Path:
    """Run a script; what ends it leaves its results as they are."""
    file = path.parent / f"{path.name}.ap"
    file.write_text(text)
    asked = read_script(str(file), assignments, seed=1, counters="off", **options)
    with suppress(EtudeError):
        run_script(
            asked, path, observe=silent, make_engine=world.make_engine, command_line=["etude run", file.name]
        )
    return path


def silent(event: Event, ledger: Progress) -> None:
    """Says nothing."""


def finished(path: Path) -> Path:
    """Without the place at which it was made."""
    settle(path)
    homeless(path)
    return path


SHELLS = ("/bin/sh", "sh")


def sh(**commands: Any) -> dict[str, Any]:
    """Answers by the first word of what a shell is given."""

    def answer(launch: Any) -> Any:
        argv = launch.workers[0].argv
        name = argv[-1].split()[0] if argv[0] in SHELLS else argv[0]
        found = commands.get(name, 0.001)
        found = next(found) if hasattr(found, "__next__") else found
        return found if isinstance(found, Mapping) else {"elapsed": found}

    return dict.fromkeys((*SHELLS, *commands), answer)


def plain(path: Path) -> None:
    finished(script(path, PLAIN, World(sh(copy=times(0.8, 30)))))


def interleaved(path: Path) -> None:
    finished(script(path, INTERLEAVED, World(sh(old=times(0.5, 31), new=times(0.45, 32)))))


def threads(path: Path) -> None:
    finished(script(path, THREADS, World(sh(first=times(0.5, 33), second=times(0.2, 34)))))


def failing(path: Path) -> None:
    bad = {"elapsed": 0.1, "exit_status": 2, "stderr": "cannot\n"}
    world = World(sh(broken=iter([0.1, bad, 0.1, 0.1, bad, *[0.1] * 9]), fine=times(0.3, 35)))
    finished(script(path, FAILING, world))


def stopped(path: Path) -> None:
    """Ended by a signal: it has a state."""
    finished(_stopped(path))


def _stopped(path: Path) -> Path:
    world = World(sh(old=times(0.5, 36), new=times(0.45, 37)), after=at(8, lambda w: w.signal(2)))
    return script(path, INTERLEAVED, world)


def resumed(path: Path) -> None:
    """The same, gone on with."""
    _stopped(path)
    world = World(sh(old=times(0.5, 38), new=times(0.45, 39)))
    resume_script(path, observe=silent, make_engine=world.make_engine)
    finished(path)


def assigned(path: Path) -> None:
    """With variables of the command line, and no .res files."""
    finished(script(path, PLAIN, World(sh(copy=times(0.8, 40))), "TRIALS=3", res=False))


REAL = """\
FOREACH N 20000 40000
  TEST sum:%N% 4
    EXEC seq %N%
  DONE
DONE
THREADS 2
TEST both 3
  EXEC sh -c 'seq 30000 | sort -n | tail -n 1'
DONE
"""


BESIDE = re.compile(
    r'("name":"|")(?!python|bash|sort|seq|tail|etude|kworker|\(|vda|disk|others)[a-z][\w.-]*(?=","start"| = )'
)
"""Names of other programs of the machine on which it ran."""


def real(path: Path) -> None:
    """A real run with a monitor and probes: other numbers each time."""
    file = path.parent / "real.ap"
    file.write_text(REAL)
    words = ["PROBES=disk others"]
    run_script(
        read_script(str(file), words, seed=1),
        path,
        observe=silent,
        command_line=["etude run", "real.ap", *words],
        monitor=Monitoring(0.1, 3),
    )
    finished(path)
    for file in (path / "monitor-1.jsonl", *path.glob("*/blocks.jsonl")):
        file.write_text(BESIDE.sub(r"\1daemon", file.read_text()))


# --- by hand ---------------------------------------------------------------------------------------


def expected(path: Path) -> None:
    """With expectations that are met, and not; one trial is far out."""
    pages.plain(path)


def probed(path: Path) -> None:
    """With what probes and hooks said beside the trials."""
    rows = []
    for trial in range(1, 9):
        metrics = {"elapsed": [1.0 + 0.02 * (trial % 3), "s"], "user": [0.4, "s"], "system": [0.2, "s"]}
        metrics |= {"disk.sda.read": [1e6 * trial, "B"], "others.cpu": [0.01 * trial, "s"]}
        rows.append(measurement("sort", trial, metrics=metrics, start_ns=trial * 10**10))
    by_hand(path, {"sort": rows}, verb="run", plan={"kind": "script", "primary": "elapsed"})
    blocks = [
        TrialBlock(n, None if n % 2 else 0, Block("others", (f"cron = 0.0{n} s", "kjournald = 0.20 s")))
        for n in range(1, 9)
    ]
    text = "".join(json.dumps(to_line(block)) + "\n" for block in blocks)
    (path / "sort" / "blocks.jsonl").write_text(text + '{"trial": 9, "wor')


def watched(path: Path) -> None:
    """With a monitor, an intruder in some trials, and a message of the kernel."""
    readings = []
    for second in range(1, 41):
        foreign = 0.8 if second in (9, 10, 25) else 0.0
        values = {"disk_sda_written": 1e6 * (second % 5), "pressure_io_some": 0.1 * (second % 3)}
        readings.append(monitored.busy_second(second, 0.5, foreign, **values))
    monitored.trials_of_seconds(path, [2] * 20, readings)
    file = path / "monitor-1.jsonl"
    more = [{"kernel": "EXT4-fs error", "level": 3, "ns": 5 * 10**8}, {"end": True, "cost": {"cpu_s": 0.5}}]
    file.write_text(file.read_text() + "".join(json.dumps(line) + "\n" for line in more))


def watched_torn(path: Path) -> None:
    """A monitor that was killed."""
    monitored.trials_of_seconds(path, [1] * 8, [monitored.busy_second(n, 0.5) for n in range(1, 9)])
    file = path / "monitor-1.jsonl"
    file.write_text(file.read_text()[:-30])


def leaking(path: Path) -> None:
    """Times that grow, and a number of files that grows with them."""
    generator = np.random.default_rng(41)
    rows = []
    for trial in range(1, 31):
        elapsed = float(0.2 * (1 + 0.01 * trial) * generator.lognormal(0, 0.005))
        metrics = {"elapsed": [elapsed, "s"], "files": [1000 + 10 * trial, "1"]}
        rows.append(measurement("leak", trial, metrics=metrics, start_ns=trial * 10**9))
    by_hand(path, {"leak": rows}, verb="run", plan={"kind": "script", "primary": "elapsed"})


def older_machine(path: Path) -> None:
    """The same tests as `expected`, on another machine."""
    pages.plain(path, machine=pages.CHANGED)


MADE: Mapping[str, Callable[[Path], None]] = {
    f"run/{make.__name__.replace('_', '-')}": make
    for make in (
        plain, interleaved, threads, failing, stopped, resumed, assigned, real, expected, probed, watched, watched_torn,
        leaking, older_machine,
    )
}  # fmt: skip
