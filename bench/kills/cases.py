"""What bench/kill.py kills: how each run is begun and resumed, and which rows it must have in the end."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rows import printed

ETUDE = (sys.executable, "-c", "from etude.cli.main import entry; entry()")
WORK = """\
# NAME: notes its conditions; hangs where the harness has asked for it, and then outlives its run
exec 9> lock
if flock -n 9; then beside=0; else beside=1; fi
if [ -e hang ]; then touch hanging; sleep 300; fi
sleep 0.02
sum=$({ pwd; umask; ulimit -a; nice; grep -E '^(Cpus|Mems)_allowed_list' /proc/$$/status; env | sort |
  grep -vE '^(_|PWD|OLDPWD|SHLVL|APTRIAL|APIT|ETUDE_KILL_BENCH|ETUDE_WINDOWS)='; } | cksum | cut -d' ' -f1)
echo "$1: beside=$beside conditions=$sum"
echo "$1" >> ran
"""
LOAD = WORK + """awk -v l="$2" 'BEGIN { printf "response %.3fms\\n", l < 430 ? 1000 / (430 - l) : 9000 }'\n"""
SCRIPT = """\
INTERLEAVE
  FOREACH NAME a b
    TEST %NAME% 5
      PRESETUP touch presetup-%NAME%
      SETUP touch data
      METRIC beside beside=(\\d+)
      METRIC conditions conditions=(\\d+)
      EXEC sh work %NAME%
      CLEANUP rm data
    DONE
  DONE
DONE
THREADS=2
TEST c 4
  METRIC beside beside=(\\d+)
  EXEC echo beside=0
DONE
"""
SURFACE = """\
[response]
command = "mountpoint -q {volume} && sh work {n}"
precision = "50 %"
[factor.n]
levels = [1, 2]
[factor.disks]
resource = "volume"
directory = "."
size = "128M"
levels = ["1"]
[factor.cpu]
resource = "quota"
levels = ["1", "2"]
[budget]
cell = "2 s"
"""
QUIET = ("aslr", "perf", "thp=never", "writeback", "watchdogs", "background")
QUIET_FILES = (
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_writeback_centisecs",
    "/proc/sys/vm/compaction_proactiveness",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
)
ALL = ("etude", "engine", "both", "program", "group")


def stat_of(pid: int) -> tuple[str, int]:
    """The state and the parent of a process; as of one that has ended where it is not there."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
        return words[0], int(words[1])
    except (OSError, IndexError):
        return "X", 0


def processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def below(root: int) -> list[int]:
    """The descendants of a process, parents first."""
    parents = {pid: stat_of(pid)[1] for pid in processes()}
    found = [root]
    for each in found:
        found += [pid for pid, parent in parents.items() if parent == each]
    return found[1:]


@dataclass(frozen=True)
class Place:
    """Where a run goes on. Its path is the same for all runs, since the path is one of a program's conditions."""

    root: Path

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def results(self) -> Path:
        return self.root / "r"

    def make(self, case: Case) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.temporary.mkdir(parents=True)
        case.prepare(self)

    def temporaries(self) -> set[str]:
        return {f"TMPDIR/{path.name}" for path in self.temporary.iterdir()}


class Case:
    """A verb that writes a results directory."""

    verb = name = ""
    targets: Sequence[str] = ALL
    good: Sequence[int] = (0,)
    """Exit statuses of a run that has come to its end."""
    measures = True
    """Whether it runs `work`, which can hang."""
    own: Sequence[str] = ("beside", "conditions", "bandwidth_unit")
    """Metrics that must be those of the uninterrupted run."""
    words: tuple[str, ...] = ()
    resumed_by: Sequence[str] = ()
    """Words in place of all others, before the directory."""
    environment: Mapping[str, str] = MappingProxyType({})

    def open(self, stack: ExitStack) -> None:
        """Start the servers that all runs of it share."""

    def members(self, etude: int) -> list[int]:
        """All processes of a run."""
        return below(etude)

    def prepare(self, place: Place) -> None:
        (place.root / "work").write_text(WORK)

    def clean(self, place: Place) -> None:
        """Undo what `prepare` made outside of the place."""

    def begin(self, place: Place) -> list[str]:
        return [*ETUDE, *self.words, "-o", str(place.results)]

    def resume(self, place: Place) -> list[str]:
        return [*ETUDE, *self.resumed_by, str(place.results)] if self.resumed_by else self.begin(place)

    def begun(self, place: Place) -> bool:
        return (place.results / "experiment.json").exists()

    def reached(self, place: Place) -> bool:
        """Whether it is far enough to be killed. Most of the time of a short run is the start of Python."""
        return place.results.exists()

    def paths(self, place: Place) -> list[Path]:
        """All files of rows."""
        return sorted(place.results.glob("**/results.jsonl"))

    def length(self, place: Place) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.paths(place))

    def lines(self, place: Place) -> Iterator[tuple[str, str]]:
        for path in self.paths(place):
            text = path.read_text()
            for line in text[: text.rfind("\n") + 1].splitlines():
                yield str(path.parent.relative_to(place.results)), line

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Each included trial, with its conditions."""
        for where, line in self.lines(place):
            row = json.loads(line)
            if row["kept"]:
                yield (where, row["block"], row["order"], row["worker"]), conditions(row, self.own)

    def failed_blocks(self, place: Place) -> set[int]:
        """The blocks of trials whose program was killed."""
        rows = [json.loads(line) for _, line in self.lines(place)] if self.measures else []
        return {row["block"] for row in rows if not row["kept"] and "block" in row}

    def keys(self, place: Place) -> list[Any]:
        return [key for key, _ in self.kept(place)]

    def rows(self, place: Place) -> Mapping[Any, Any]:
        return dict(self.kept(place))

    def on_disk(self, place: Place) -> Counter[str]:
        """Whole trials, which no kill may lose."""
        return Counter(line for _, line in self.lines(place) if json.loads(line)["worker"] == 0)

    def files(self, place: Place) -> set[str]:
        """The names of all files but `work`'s own, and logs: each session has those of its warm-up runs."""
        own = {"hang", "hanging", "lock", "ran", "said", "work"}
        found = (path.relative_to(place.root) for path in place.root.rglob("*") if not path.is_dir())
        lasting = (path for path in found if not {*path.parts[:-1]} & {"cache", "tmp", "logs"})
        return {str(path) for path in lasting} - own


def conditions(row: Mapping[str, Any], own: Sequence[str]) -> Any:
    metrics = row["metrics"]
    return tuple(row["command"]), row["inner"], *(metrics[name][0] for name in own if name in metrics)


class Bench(Case):
    """Two commands by blocks; a variant each for other ways of the trial loop."""

    verb = "bench"
    resumed_by = ("bench", "--resume")

    def __init__(self, name: str, *words: str, tests: int) -> None:
        self.name = name
        named = [word for test in "abc"[:tests] for word in ("-n", test, f"sh work {test}")]
        own = ("--metric", "beside=beside=(\\d+)", "--metric", "conditions=conditions=(\\d+)")
        self.words = ("bench", "--seed", "7", "--monitor", "off", *words, *own, *named)
        if "--workers" in words:  # which of them is beside another is chance
            self.own = ("conditions",)


class Remount(Bench):
    """A file system that is unmounted and mounted again before each trial."""

    verb = "cool"

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        image, mnt = place.root / "image", place.root / "mnt"
        mnt.mkdir()
        with image.open("wb") as file:
            file.truncate(64 << 20)
        printed("mkfs.ext4", "-q", image)
        printed("mount", "-o", "loop,noatime", image, mnt)
        (mnt / "data").mkdir()
        (mnt / "data" / "file").write_bytes(bytes(1 << 20))

    def clean(self, place: Place) -> None:
        while os.path.ismount(place.root / "mnt"):
            printed("umount", place.root / "mnt")


class Surface(Case):
    """A surface over a volume and a quota of CPU time; a trial fails where the volume is not mounted."""

    verb = name = "surface"
    words = ("surface", "surface.toml", "-q")

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        (place.root / "surface.toml").write_text(SURFACE)

    def resume(self, place: Place) -> list[str]:
        """With cells tried again that failed: a command that is killed is a failure."""
        return [*self.begin(place), "--retry"]

    def paths(self, place: Place) -> list[Path]:
        """Those of resources come and go beside them."""
        patterns = ("*/results.jsonl", "*/measured/*/results.jsonl")
        return sorted(path for pattern in patterns for path in place.results.glob(pattern))

    def cells(self, place: Place) -> Iterator[dict[str, Any]]:
        for _, line in self.lines(place):
            row = json.loads(line)
            if "surface" in row:
                yield row["surface"]

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        for cell in self.cells(place):
            yield ("cell", *cell["cell"]), cell["state"]

    def keys(self, place: Place) -> list[Any]:
        rows = [(where, json.loads(line)) for where, line in self.lines(place)]
        cells = [key for key, state in self.kept(place) if state != "failed"]  # those are tried again
        return [*cells, *((where, row["trial"]) for where, row in rows if "surface" not in row)]

    def on_disk(self, place: Place) -> Counter[str]:
        return Counter(line for _, line in self.lines(place) if "surface" in json.loads(line))

    def files(self, place: Place) -> set[str]:
        """All but trials of a cell: how many there are, and of how many sessions, follows from the kills."""
        return {path for path in super().files(place) if not path.startswith("r/")}


class Quiet(Case):
    """The machine made quiet and put back."""

    verb = name = "quiet"
    targets = ("program", "group")
    measures = False

    def begin(self, place: Place) -> list[str]:
        quiet = shlex.join([*ETUDE, "quiet"])
        words = f"{quiet} on {' '.join(QUIET)}; {quiet} off"
        return ["env", f"ETUDE_QUIET_DIRECTORY={place.root / 'quiet'}", "sh", "-c", words]

    def begun(self, place: Place) -> bool:
        return False

    def reached(self, place: Place) -> bool:
        return (place.root / "quiet").exists()

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        for path in QUIET_FILES:
            if Path(path).exists():
                yield (path,), Path(path).read_text()

    def on_disk(self, place: Place) -> Counter[str]:
        return Counter()


class Script(Case):
    """A script with an INTERLEAVE, hooks, and several workers."""

    verb = name = "run"
    words = ("run", "--seed", "7", "--monitor", "off", "script.ap")
    resumed_by = ("run", "--resume")

    def prepare(self, place: Place) -> None:
        super().prepare(place)
        (place.root / "script.ap").write_text(SCRIPT)


class Peak(Case):
    """A search whose load command answers at once, and always the same for a load."""

    verb = name = "peak"
    targets = ("etude", "program", "group")
    good = (0, 1)
    words = (
        "peak", "--run", "sh work peak {load}", "--read", "response (\\S+)", "--mean", "20ms", "--loads", "50..800",
        "--runlength", "1s", "--policy", "binsearch", "--seed", "3", "--quiet",
    )  # fmt: skip

    def prepare(self, place: Place) -> None:
        (place.root / "work").write_text(LOAD)

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """In their order: the number of a trial counts those whose program was killed, which are made once more."""
        rows = ((where, json.loads(line)) for where, line in self.lines(place))
        kept = sorted((row["trial"], where, row["peak"]) for where, row in rows if row["kept"])
        for place_in_order, (_, where, peak) in enumerate(kept):
            # Not `why`: in place of a trial that failed, one is made for another reason.
            yield (where, place_in_order), (peak["load"], peak["runlength_s"])


class Sweep(Case):
    """A short sweep of the I/O lab."""

    verb = "io"
    name = "io-sweep"
    measures = False
    words = (
        "io", "sweep", "data", "--buffers", "4K,64K", "--totals", "256K", "--curve", "static", "--no-storage",
        "--trials", "8", "--seed", "7", "--format", "svg",
    )  # fmt: skip
    resumed_by = ("io", "sweep", "--format", "svg", "--resume")

    def prepare(self, place: Place) -> None:
        (place.root / "data").mkdir()

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        for key, (command, *more) in super().kept(place):
            # Data files are named for the process that made the plan.
            yield key, ([word for word in command if "/data/" not in word], *more)


class Lab(Sweep):
    """The whole I/O lab, in its fewest trials."""

    verb = name = "lab"
    words = ("io", "lab", "data", "--trials", "3", "--seed", "7", "--format", "svg")
    resumed_by = ("io", "lab", "--format", "svg", "--resume")

    def begun(self, place: Place) -> bool:
        return (place.results / "lab.json").exists()


class Record(Case):
    """A recording of a shell's children: what a killed one left is read as far as it goes, and it is made anew."""

    verb = name = "record"
    measures = False
    targets = ("etude", "program", "group")
    program = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); cat work > /dev/null; done; sh work r"

    def begin(self, place: Place) -> list[str]:
        number = len(list(place.root.glob("*.trace")))
        return [*ETUDE, "record", "-q", "-o", f"{number}.trace", "--", "sh", "-c", self.program]

    def begun(self, place: Place) -> bool:
        return False

    def reached(self, place: Place) -> bool:
        return any(place.root.glob("*.trace"))

    def kept(self, place: Place) -> Iterator[tuple[tuple[Any, ...], Any]]:
        traces = sorted(place.root.glob("*.trace"), key=lambda path: int(path.stem))
        for path in traces[:-1]:  # killed ones: read up to their end, or refused in one line
            said = profile(path, "--partial")
            lines = said.stderr.strip().splitlines()
            refused = said.returncode == 3 and len(lines) == 1
            if not (said.returncode == 0 or refused) or "Traceback" in said.stderr:
                yield ("unreadable", path.name), said.stderr
        found = json.loads(profile(traces[-1]).stdout)
        for name, each in found["calls"].items():
            if name in ("openat", "execve"):  # how many reads a pipe takes is a matter of time
                yield (name,), each["count"]

    def on_disk(self, place: Place) -> Counter[str]:
        return Counter(path.name for path in place.root.glob("*.trace"))

    def files(self, place: Place) -> set[str]:
        return {path for path in super().files(place) if not path.endswith(".trace")}


def profile(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What `etude profile --json` prints of a trace."""
    command = [*ETUDE, "profile", "--json", *words, shlex.quote(str(path))]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


HOOKS = ("--setup", "touch data-$ETUDE_TEST", "--cleanup", "rm data-$ETUDE_TEST")
CASES: Sequence[Case] = (
    Bench("bench", "--trials", "6", tests=2),
    Bench("bench-repeat", "--trials", "9", tests=1),
    Bench("bench-workers", "--trials", "4", "--workers", "2", "--no-cgroup", tests=2),
    Bench("bench-hooks", "--trials", "4", *HOOKS, "--shell", tests=2),
    Remount("cool-remount", "--trials", "16", "--cool", "remount", "--data", "mnt/data", tests=1),
    Script(),
    Peak(),
    Surface(),
    Quiet(),
    Record(),
    Sweep(),
    Lab(),
)
