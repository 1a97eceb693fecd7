"""Kills Étude at random instants and resumes it, again and again: what differs from an uninterrupted run, what is left.

python bench/kill.py [--kills N] [--seed N] [--verbs bench,cool,run,peak,surface,quiet,store,record,io,lab,pool]
    [--only CASE:NUMBER] [--keep DIR]

Each run is begun, killed by SIGKILL one to three times (Étude, its engine, both, the measured program, the whole
group), and resumed until it ends; some kills hit while a program hangs that would outlive them. Then its rows are
compared with those of an uninterrupted run of the same seed. The measured program notes its conditions: its directory,
environment, limits, CPUs, and whether another one runs at the same time. The exit status is 1 if a trial is lost,
doubled, added or measured under other conditions, or if mounts, devices, groups, processes or files are left.

It runs as root in mounts of its own, and counts groups and devices of its own runs: others may use the machine. The
stores in PostgreSQL and the pool need the Debian packages postgresql, munge, slurmctld, slurmd and slurm-client.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kills.cases import CASES as ALONE
from kills.cases import Case, Place, below, processes, stat_of
from kills.served import SERVED
from rows import measured_where, options, progress, table

CASES = (*ALONE, *SERVED)
TARGETS = ("etude", "engine", "both", "program", "group")
MOST_KILLS = 5
"""The most kills of one run."""
HANGING = 0.4
"""Share of kills that hit while a program hangs."""
PATIENCE_S = 1800.0
"""A program that takes longer hangs."""
LOOK_S = 0.01
NOTES = Path("/run/etude")
"""Where Étude notes what a later start puts back."""
OWN_MOUNTS = 'mkdir -p "$0" && mount -t tmpfs -o mode=0755 none "$0" && exec "$@"'
COUNTS = (
    *("lost", "doubled", "added", "other conditions", "mounts", "devices", "groups", "processes", "files"),
    "failures",
)


@dataclass
class Found:
    """Counts of one case, over all its kills."""

    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Machine:
    """State of the machine that a run must leave as it was: what there is of this harness's own runs."""

    mounts: frozenset[str]
    devices: frozenset[str]
    groups: frozenset[str]
    notes: frozenset[str]

    @classmethod
    def now(cls, root: Path, etudes: Collection[int] = ()) -> Machine:
        """`etudes`: process ids of the runs so far, which the names of their groups have."""
        # Without numbers of mounts and devices, which are others each time.
        mounts = [line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        files = Path("/sys/block").glob("*/loop/backing_file")
        devices = [text for file in files if str(root) in (text := read(file).decode(errors="replace"))]
        ours = tuple(f"etude-{pid}-" for pid in etudes)
        groups = [place for place, _, _ in os.walk("/sys/fs/cgroup") if Path(place).name.startswith(ours)]
        notes = [str(path) for path in NOTES.glob("**/*") if path.is_file()]
        return cls(frozenset(mounts), frozenset(devices), frozenset(groups), frozenset(notes))


def read(file: Path) -> bytes:
    with suppress(OSError):
        return file.read_bytes()
    return b""


def read_of(pid: int, name: str) -> bytes:
    return read(Path(f"/proc/{pid}/{name}"))


def victims(target: str, etude: int, members: Sequence[int]) -> list[int]:
    """The processes that a kill of this target is for; none where it is not running."""
    children = (pid for pid in members if stat_of(pid)[1] == etude)
    engines = [pid for pid in children if read_of(pid, "comm").startswith(b"etude-engine")]
    if target == "program":
        return [pid for pid in members if pid not in engines]
    found = {"etude": [etude], "engine": engines, "both": [etude, *engines], "group": [etude, *members]}
    return found[target]


def left_running(mark: str) -> list[int]:
    """Processes that have the mark of this run in their environment."""
    name = mark.encode()
    return [pid for pid in processes() if name in read_of(pid, "environ") and stat_of(pid)[0] not in "ZX"]


class Run:
    """One run of a case: begun, killed, resumed, ended."""

    def __init__(self, case: Case, place: Place, mark: str) -> None:
        self.case, self.place, self.mark = case, place, mark
        self.etudes: set[int] = set()
        """Process ids of all that were started."""
        own = {"TMPDIR": str(place.temporary), "XDG_CACHE_HOME": str(place.root / "cache")}
        self.environment = {**os.environ, **case.environment, **own, "ETUDE_KILL_BENCH": mark}

    def start(self, begun: bool) -> subprocess.Popen[bytes]:
        words = self.case.resume(self.place) if begun else self.case.begin(self.place)
        with open(self.place.root / "said", "ab") as said:
            streams = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said}
            where = {"cwd": self.place.root, "env": self.environment}
            process: subprocess.Popen[bytes] = subprocess.Popen(
                words, **where, **streams, start_new_session=True
            )
        self.etudes.add(process.pid)
        return process

    def finish(self, begun: bool) -> int | None:
        """Run to the end; its exit status, or None of one that hangs."""
        return ended(self.start(begun))

    def kill(self, begun: bool, target: str, lines: int, at_s: float, hanging: bool) -> str:
        """Start, wait for so many lines of results and a time, kill: what became of it, "" where it ended before."""
        hang, hangs = self.place.root / "hang", self.place.root / "hanging"
        hangs.unlink(missing_ok=True)
        process = self.start(begun)
        while process.poll() is None and self.case.length(self.place) < lines:
            time.sleep(LOOK_S)
        until = time.monotonic() + at_s
        while process.poll() is None and (time.monotonic() < until or not self.case.reached(self.place)):
            time.sleep(LOOK_S)
        if hanging and self.case.measures:
            hang.touch()
            while process.poll() is None and not hangs.exists():
                time.sleep(LOOK_S)
        found: list[int] = []
        while process.poll() is None and not (
            found := victims(target, process.pid, self.case.members(process.pid))
        ):
            time.sleep(LOOK_S)
        self.etudes.update(found)
        if target == "group":
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        kill(found)
        hang.unlink(missing_ok=True)
        if not found:
            return ""
        return "hangs" if ended(process) is None else "killed"


def ended(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status; None of one that hangs, which is killed with all below it."""
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        kill([process.pid, *below(process.pid)])
        process.wait()
        return None


def kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Once:
    """A run that nobody kills."""

    rows: Mapping[object, object]
    files: set[str]
    lines: int
    takes_s: float

    def instant(self, lines: int, generator: random.Random) -> tuple[int, float]:
        """When to kill a run that has so many lines: at which line, and how long after it, s. Counted in lines, since a
        busy machine is slower."""
        at = generator.randint(lines, max(lines, self.lines - 1))
        # Mostly soon: much of the time of a short run is the start of Python, before its first line.
        return at, generator.random() ** 3 * self.takes_s / max(self.lines, 1)


def uninterrupted(case: Case, place: Place) -> Once:
    place.make(case)
    began = time.monotonic()
    code = Run(case, place, f"once-{os.getpid()}").finish(False)
    if code not in case.good:
        sys.exit(f"bench: {case.name}: ended with {code}:\n{(place.root / 'said').read_text()[-2000:]}")
    takes_s = time.monotonic() - began
    once = Once(case.rows(place), case.files(place), case.length(place), takes_s)
    case.clean(place)
    return once


def attack(number: int, case: Case, place: Place, seed: int, once: Once, found: Found) -> None:
    generator = random.Random(f"{seed} {case.name} {number}")
    place.make(case)
    before, mark = Machine.now(place.root), f"{os.getpid()}-{number}"
    run, said = Run(case, place, mark), f"{case.name}:{number}"
    held: Counter[str] = Counter()
    for _ in range(generator.randint(1, MOST_KILLS)):
        target = generator.choice([each for each in TARGETS if each in case.targets])
        hanging, begun = generator.random() < HANGING, case.begun(place)
        lines, at_s = once.instant(case.length(place), generator)
        became = run.kill(begun, target, lines, at_s, hanging)
        if not became:
            break
        found.kills[target] += 1
        said += f" {target}@{lines}+{at_s:.3f}s{'h' if hanging else ''}"
        if became == "hangs":
            wrong(found, said, "failures", "it hangs")
        for row, count in (held - case.on_disk(place)).items():
            wrong(found, said, "lost", f"{count} × {row}")
        held = case.on_disk(place)
    for _ in range(2):
        code = run.finish(case.begun(place))
        if code in case.good:
            break
    else:
        wrong(found, said, "failures", f"resumed, it ends with {code}")
    found.runs += 1
    compare(case, place, once.rows, held, found, said)
    for pid in left_running(mark):
        wrong(found, said, "processes", f"{read_of(pid, 'cmdline')!r}")
        kill([pid])
    for path in sorted((case.files(place) - once.files) | place.temporaries()):
        wrong(found, said, "files", path)
    after = Machine.now(place.root, run.etudes)
    for what in ("mounts", "devices", "groups"):
        for each in getattr(after, what) - getattr(before, what):
            wrong(found, said, what, each)
    for each in after.notes - before.notes:
        wrong(found, said, "files", each)
    case.clean(place)


def compare(
    case: Case, place: Place, rows: Mapping[object, object], held: Counter[str], found: Found, said: str
) -> None:
    """Rows beside those of the uninterrupted run. A block in which a killed program failed is made once more."""
    now, failed = case.rows(place), case.failed_blocks(place)
    every = rows.keys() | now.keys()
    torn = {key for key in every if isinstance(key, tuple) and key[1:2] and key[1] in failed}
    now = {key: value for key, value in now.items() if key not in torn}
    rows = {key: value for key, value in rows.items() if key not in torn}
    further = sorted({key[1] for key in now.keys() - rows.keys()}) if torn else []
    now = {key: value for key, value in now.items() if key[1] not in further[: len(failed)]} if torn else now
    counts = Counter(case.keys(place))
    for key, count in counts.items():
        if count > 1:
            wrong(found, said, "doubled", f"{key} × {count}")
    for key in rows.keys() - now.keys():
        wrong(found, said, "lost", key)
    for key in now.keys() - rows.keys():
        wrong(found, said, "added", key)
    for key in rows.keys() & now.keys():
        if rows[key] != now[key]:
            wrong(found, said, "other conditions", f"{key}: {now[key]}, not {rows[key]}")
    for row, count in (held - case.on_disk(place)).items():
        wrong(found, said, "lost", f"{count} × {row}")


def wrong(found: Found, said: str, what: str, detail: str) -> None:
    found.wrong[what] += 1
    found.said.append(f"{said}: {what}: {detail}")
    print(found.said[-1], file=sys.stderr)


def figures(found: Mapping[str, Found], kills: int, seed: int, seconds: float) -> list[str]:
    heads = ["case", "runs", *(f"{target} killed" for target in TARGETS), *COUNTS]
    rows = [
        [name, *map(str, (each.runs, *(each.kills[t] for t in TARGETS), *(each.wrong[w] for w in COUNTS)))]
        for name, each in found.items()
    ]
    header = measured_where(f"{kills} kills in {seconds:.0f} s", (f"seed {seed}",))
    return [*header, "", *table(heads, rows)]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbs", default=",".join(dict.fromkeys(case.verb for case in CASES)))
    parser.add_argument("--only", metavar="CASE:NUMBER", help="one run again, and keep it")
    parser.add_argument("--keep", metavar="DIR", help="work there, and leave the last run")
    given = parser.parse_args()
    cases = [case for case in CASES if case.verb in given.verbs.split(",")]
    numbers: Iterator[int] = iter(range(sys.maxsize))
    if given.only:
        name, number = given.only.rsplit(":", 1)
        cases, numbers = [case for case in CASES if case.name == name], iter([int(number)])
    if not os.environ.get("ETUDE_KILL_MOUNTS"):
        os.environ["ETUDE_KILL_MOUNTS"] = "1"
        own = ("unshare", "--mount", "sh", "-c", OWN_MOUNTS, str(NOTES))
        os.execvp(own[0], [*own, sys.executable, *sys.argv])
    root = Path(given.keep or tempfile.mkdtemp(prefix="etude-kill-")).resolve()
    place, found = Place(root / "place"), {case.name: Found() for case in cases}
    began = time.monotonic()
    servers = ExitStack()
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):  # the run that goes on then is finished
        signal.signal(number, lambda which, _: told.append(which))
    try:
        for case in cases:
            case.open(servers)
        once = {case.name: uninterrupted(case, place) for case in cases}
        for number in numbers:
            case = cases[number % len(cases)]
            attack(number, case, place, given.seed, once[case.name], found[case.name])
            done = sum(sum(each.kills.values()) for each in found.values())
            progress(f"{done}/{given.kills} kills")
            if done >= given.kills or told:
                break
    finally:
        progress("")
        for case in cases:
            case.clean(place)
        servers.close()
        if not given.keep:
            shutil.rmtree(root, ignore_errors=True)
    done = sum(sum(each.kills.values()) for each in found.values())
    print("\n".join(figures(found, done, given.seed, time.monotonic() - began)))
    return int(any(each.wrong for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
