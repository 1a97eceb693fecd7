"""A real machine made quiet and put back: killed anywhere, refused, read-only, by a script that ends in any way.

What this changes is of the whole machine, for seconds. Threads and services are those of a PID namespace of its own, so
that nobody else's are touched. Whatever happens, the fixture puts back what it found.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

pytestmark = [pytest.mark.serial, pytest.mark.needs_root]

KERNEL, VM = Path("/proc/sys/kernel"), Path("/proc/sys/vm")
HUGE = Path("/sys/kernel/mm/transparent_hugepage")
ETUDE = [sys.executable, "-m", "etude.cli.main"]
NOLOGIN = (Path("/etc/nologin"), Path("/run/nologin"))
QUEUES = Path("/sys/devices/virtual/workqueue/cpumask")
SCRIPT_WORDS = "aslr perf watchdogs"
WORDS = (
    *("aslr", "thp=never", "watchdogs", "perf", "background", "writeback", "swap", "services", "logins"),
    *("irqs", "shield", "cpus=1"),
)


def setting_files() -> list[Path]:
    """All that any operation may write to, and what it may change by that."""
    named = [
        *(KERNEL / name for name in ("randomize_va_space", "numa_balancing", "perf_event_max_sample_rate")),
        *(
            KERNEL / name
            for name in ("watchdog", "nmi_watchdog", "soft_watchdog", "perf_cpu_time_max_percent")
        ),
        *sorted(VM.glob("dirty*")),
        *(VM / "compaction_proactiveness", Path("/sys/kernel/mm/ksm/run"), QUEUES),
        *(HUGE / "enabled", HUGE / "defrag"),
        *sorted(Path("/proc/irq").glob("*/smp_affinity_list")),
        Path("/proc/irq/default_smp_affinity"),
        Path("/proc/swaps"),
        *NOLOGIN,
    ]
    return [path for path in named if path.exists() or path in NOLOGIN]


@dataclass
class Bench:
    """A machine of which something is known to be not quiet, and a namespace in which `etude` runs."""

    directory: Path
    first: int
    """The first process of the namespace, as it is numbered outside."""
    environment: dict[str, str] = field(default_factory=dict)

    def quiet(self, *words: str, strace: str = "") -> subprocess.CompletedProcess[str]:
        call = strace.partition(":")[0]
        tracer = (
            ["strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={strace}"] if strace else []
        )
        return self.run(*tracer, *ETUDE, "quiet", *words)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", f"--target={self.first}", "--pid", "--mount", f"--wd={self.directory}", "--"]
        return subprocess.run(
            [*inside, *command],
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def seen(self) -> dict[str, object]:
        """Settings byte for byte, and the processes of the namespace: state and affinity of each thread."""
        found: dict[str, object] = {}
        for path in setting_files():
            found[str(path)] = path.read_bytes() if path.exists() else None
        swaps = str(found["/proc/swaps"])
        found["/proc/swaps"] = re.sub(
            r"(\\t| )+", " ", re.sub(r"(\\t)+(\d+)(\\t)+(\d+)(\\t)+(-?\d+)", r" \2 \6", swaps)
        )
        for pid in self.processes:
            with suppress(OSError):
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                found[f"process {pid}"] = ("stopped" if stat[0] == "T" else "runs", os.sched_getaffinity(pid))
        return found

    @cached_property
    def processes(self) -> list[int]:
        """The namespace's own; others are there for a moment."""
        children = Path(f"/proc/{self.first}/task/{self.first}/children").read_text().split()
        return [self.first, *map(int, children)]


def put(path: Path, text: str) -> None:
    path.write_text(f"{text}\n")


def restore(before: dict[Path, str]) -> None:
    for path, text in before.items():
        with suppress(OSError):
            chosen = re.search(r"\[(\S+)\]", text)
            wanted = chosen[1] if chosen else text.strip()
            if path.read_text() != text:
                put(path, wanted)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Swap in two files, one with a priority; ASLR without the heap; huge pages always; limits in bytes; a cron."""
    settings = [path for path in setting_files() if path not in NOLOGIN and path.name != "swaps"]
    before = {path: path.read_text() for path in settings}
    assert not any(path.exists() for path in NOLOGIN), "logins are refused here already"
    areas = [tmp_path / "swap one", tmp_path / "swap2"]
    shutil.copy("/bin/sleep", tmp_path / "cron")
    namespace = subprocess.Popen(
        [
            *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"),
            f"{tmp_path}/cron 1000 & sleep 1000 & echo up; wait",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert namespace.stdout is not None
        assert namespace.stdout.readline() == "up\n"
        first = int(Path(f"/proc/{namespace.pid}/task/{namespace.pid}/children").read_text())
        put(KERNEL / "randomize_va_space", "1")
        if (HUGE / "enabled").exists():
            put(HUGE / "enabled", "always")
        put(VM / "dirty_background_bytes", str(64 << 20))
        for area, priority in zip(areas, (["--priority", "7"], []), strict=True):
            area.write_bytes(bytes(8 << 20))
            area.chmod(0o600)
            subprocess.run(["mkswap", area], check=True, capture_output=True)
            subprocess.run(["swapon", *priority, area], check=True, capture_output=True)
        environment = os.environ | {"ETUDE_QUIET_DIRECTORY": str(tmp_path / "ledger")}
        yield Bench(tmp_path, first, environment)
    finally:
        namespace.kill()
        namespace.wait()
        for area in areas:
            subprocess.run(["swapoff", area], check=False, capture_output=True)
        for path in NOLOGIN:
            path.unlink(missing_ok=True)
        restore(before)
        assert {path: path.read_text() for path in settings} == before, "the machine is as it was"


@pytest.mark.quick
def test_a_real_machine_is_quiet_and_then_as_it_was_byte_for_byte(bench: Bench) -> None:
    before = bench.seen()
    done = bench.quiet("on", *WORDS, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["unavailable"] == {}
    assert (KERNEL / "randomize_va_space").read_text() == "2\n"
    assert len(Path("/proc/swaps").read_text().splitlines()) == 1
    assert (KERNEL / "perf_event_max_sample_rate").read_text() == "1\n"
    assert (VM / "dirty_background_bytes").read_text() == "0\n"
    quiet = bench.seen()
    processes = [value for name, value in quiet.items() if name.startswith("process")]
    assert ("stopped", {0}) in processes, "cron is frozen, and off CPU 1"
    assert Path("/proc/irq/default_smp_affinity").read_text().strip() == "1"
    status = bench.quiet("status").stdout
    assert re.search(r"^aslr +2 +2 +held \(1 changed\)$", status, re.MULTILINE)
    assert "etude quiet off" in status
    again = bench.quiet("on", *WORDS)
    assert again.returncode == 0
    assert bench.seen() == quiet
    off = bench.quiet("off")
    assert off.returncode == 0, off.stderr
    assert bench.seen() == before
    nothing = bench.quiet("off")
    assert nothing.returncode == 0
    assert nothing.stdout.startswith("Nothing ")


ON = [
    *(("write", n) for n in (1, 2, 3, 5, 8, 13, 21)),
    *(("fsync", n) for n in (1, 2, 7, 12)),
    *(("rename", n) for n in (1, 5, 9)),
    *(("sched_setaffinity", n) for n in (1, 2)),
    *(("kill", 1), ("link", 1), ("vfork", 1)),
]
OFF = [*(("write", n) for n in (1, 3, 7, 12, 20)), ("rename", 2), ("unlink", 1), ("unlink", 2), ("kill", 1)]


@pytest.mark.needs_program("strace")
def test_killed_at_any_call_everything_goes_back(bench: Bench) -> None:
    """`strace` kills the process as it enters its n-th call of a kind; where it makes fewer, it comes to its end."""
    before, killed = bench.seen(), 0
    for way, points in (("on", ON), ("off", OFF)):
        for call, number in points:
            if way == "off":
                assert bench.quiet("on", *WORDS).returncode == 0
            words = WORDS if way == "on" else ()
            done = bench.quiet(way, *words, strace=f"{call}:signal=KILL:when={number}")
            killed += done.returncode in (-9, 137)
            end = bench.quiet("off")
            assert end.returncode == 0, (way, call, number, end.stderr)
            assert bench.seen() == before, (way, call, number)
            assert not (bench.directory / "ledger/quiet.json").exists()
    print(f"killed {killed} times of {len(ON) + len(OFF)}")
    assert killed >= 20


@pytest.mark.needs_program("strace")
@pytest.mark.parametrize("error", ["EIO", "EROFS", "EPERM"])
def test_a_kernel_that_refuses_in_the_middle_leaves_nothing_changed(bench: Bench, error: str) -> None:
    before = bench.seen()
    done = bench.quiet("on", *WORDS, strace=f"rename:error={error}:when=5")
    assert done.returncode == 5
    assert re.fullmatch(r"etude: quiet \w+: .*changed\n", done.stderr), done.stderr
    assert bench.seen() == before


def test_what_is_read_only_is_said_with_its_reason(bench: Bench) -> None:
    before = bench.seen()
    closed = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && mount -o remount,ro,bind /sys"
    line = f"{closed} && exec {sys.executable} -m etude.cli.main quiet on aslr thp writeback services"
    done = bench.run("unshare", "--mount", "sh", "-c", line)
    assert done.returncode == 1, "what was named could not be done"
    assert "aslr: not here: /proc/sys/kernel/randomize_va_space " in done.stdout
    assert "thp: not here: /sys/kernel/mm/transparent_hugepage/enabled " in done.stdout
    assert bench.quiet("off").returncode == 0
    assert bench.seen() == before


def test_who_is_not_root_is_told_so_and_may_look(bench: Bench) -> None:
    bench.quiet("on", "aslr")
    caps = [
        f"--{kind}-caps=-all,+dac_read_search" for kind in ("inh", "ambient")
    ]  # to find Python in root's home
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *caps, "--"]
    before = bench.seen()
    for words in (("quiet", "on", "thp"), ("quiet", "off")):
        done = bench.run(*nobody, *ETUDE, *words)
        assert (done.returncode, done.stdout) == (5, ""), done.stderr
        assert done.stderr.startswith("etude: only root"), done.stderr
    assert bench.seen() == before
    bench.quiet("off")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1, "steps": [{"undo": "run"}]}', '{"version": 9}']
)
def test_a_corrupted_ledger_is_one_line_and_nothing_changes(bench: Bench, text: str) -> None:
    (bench.directory / "ledger").mkdir()
    (bench.directory / "ledger/quiet.json").write_text(text)
    before = bench.seen()
    for words in (("on", "aslr"), ("off",), ("status",)):
        done = bench.quiet(*words)
        assert done.returncode == 3
        assert done.stderr.count("\n") == 1
        assert "quiet.json" in done.stderr
    assert bench.seen() == before


def test_a_dry_run_changes_nothing(bench: Bench) -> None:
    before = bench.seen()
    done = bench.quiet("on", "--dry-run", *WORDS)
    assert done.returncode == 0
    assert "aslr: /proc/sys/kernel/randomize_va_space: 1 -> 2\n" in done.stdout
    assert bench.seen() == before
    assert not (bench.directory / "ledger").exists()


# --- scripts --------------------------------------------------------------------------------------

SCRIPT = f"""\
QUIET {SCRIPT_WORDS}
SYSTEM cat /proc/sys/kernel/randomize_va_space /proc/sys/kernel/perf_event_max_sample_rate >quiet
%s
TEST t 1
EXEC %s
DONE
"""


def script(bench: Bench, *, before: str = "ECHO", command: str = "true") -> list[str]:
    (bench.directory / "s.ap").write_text(SCRIPT % (before, command))
    return [*ETUDE, "run", "s.ap", "-o", "results"]


def test_a_script_is_quiet_until_it_ends_and_its_results_say_so(bench: Bench) -> None:
    before = bench.seen()
    done = bench.run(*script(bench))
    assert done.returncode == 0, done.stderr
    assert (bench.directory / "quiet").read_text() == "2\n1\n"
    assert bench.seen() == before
    (found,) = json.loads((bench.directory / "results/experiment.json").read_text())["quiet"]
    assert (found["sitting"], found["by"], found["asked"]) == (1, "script", SCRIPT_WORDS.split())
    assert found["operations"]["aslr"] == {"proc/sys/kernel/randomize_va_space": ["1", "2"]}


def test_a_script_that_fails_is_quiet_no_longer(bench: Bench) -> None:
    before = bench.seen()
    done = bench.run(*script(bench, before="FASTFAIL\nSYSTEM false"))
    assert done.returncode == 4, done.stderr
    assert (bench.directory / "quiet").read_text() == "2\n1\n"
    assert bench.seen() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_a_script_that_is_interrupted_is_quiet_no_longer(bench: Bench, number: signal.Signals) -> None:
    before = bench.seen()
    done = bench.run(
        *script(bench, command=f"sh -c 'kill -{number:d} $(cat etude.pid); sleep 20'", before=PID_LINE)
    )
    assert done.returncode == 128 + number, done.stderr
    assert (bench.directory / "quiet").read_text() == "2\n1\n"
    assert bench.seen() == before


PID_LINE = "SYSTEM ps -eo pid=,args= | awk '/[e]tude.cli.main run/ {print $1; exit}' >etude.pid"


def test_what_a_killed_script_leaves_goes_back_and_going_on_is_quiet_again(bench: Bench) -> None:
    before = bench.seen()
    once = "sh -c 'test -e again || { touch again; kill -9 $(cat etude.pid); sleep 5; }'"
    done = bench.run(*script(bench, command=once, before=PID_LINE))
    assert done.returncode in (-9, 137), done.stderr
    assert (KERNEL / "randomize_va_space").read_text() == "2\n"
    assert bench.run(*ETUDE, "run", "--resume", "results").returncode == 0
    assert bench.seen() == before, "the next that asks puts back what was left, and then its own"
    noted = json.loads((bench.directory / "results/experiment.json").read_text())["quiet"]
    assert [each["sitting"] for each in noted if each["by"] == "script"] == [1, 2]
    assert noted[-1]["operations"]["aslr"] == {"proc/sys/kernel/randomize_va_space": ["1", "2"]}


def test_what_is_quiet_by_hand_stands_in_the_results_of_bench(bench: Bench) -> None:
    before = bench.seen()
    bench.quiet("on", "aslr")
    done = bench.run(*ETUDE, "bench", "--trials", "2", "-o", "results", "true")
    assert done.returncode == 0, done.stderr
    bench.quiet("off")
    assert json.loads((bench.directory / "results/experiment.json").read_text())["quiet"] == [
        {
            "sitting": 1,
            "by": "hand",
            "operations": {"aslr": {"proc/sys/kernel/randomize_va_space": ["1", "2"]}},
        }
    ]
    assert bench.seen() == before


def test_the_shipped_beginning_changes_nothing_unless_it_is_asked(bench: Bench) -> None:
    before = bench.seen()
    look = "SYSTEM cat /proc/sys/kernel/randomize_va_space >quiet"
    (bench.directory / "s.ap").write_text(
        f"INCLUDE common.inc\n{look}\nTEST t 1\nEXEC true\nDONE\nINCLUDE ok.inc\n"
    )
    for asked, value in (("", "1\n"), ("aslr", "2\n")):
        bench.environment["APQUIET"] = asked
        done = bench.run(*ETUDE, "run", "s.ap", "-o", f"results{asked}")
        assert done.returncode == 0, done.stderr
        assert (bench.directory / "quiet").read_text() == value
        assert bench.seen() == before
