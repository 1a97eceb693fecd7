"""Put causes into a program, let `etude why` find them, and write bench/why/results.md.

    python bench/why.py [--pairs N] [--same N] [--only NAME] [--output FILE]     (as root; needs perf, a C compiler)

For each cause: is it named first, and does its interval overlap that of the plain trials? For the program against
itself (`--same`): in how many runs is any cause named? Exits with 1 where more than one cause is not found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import etude
from etude.api.why import Why

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = Path(__file__).resolve().parent / "why" / "results.md"
MIB = 192
BASE = f"./copy {MIB} 65536"


@dataclass(frozen=True)
class Injected:
    """A program with one cause more, and what names that cause."""

    command: str
    kind: str
    names: tuple[str, ...]
    """Functions, system calls or callers, one of which is named."""
    device: str = ""
    """Change of the device of the second test."""


CAUSES = {
    "small buffer": Injected(f"./copy {MIB} 4096", "call", ("read",)),
    "fsync": Injected(f"{BASE} fsync=50", "call", ("fsync",)),
    "lock": Injected(f"{BASE} lock=30", "function", ("compute", "hold_the_lock")),
    "slow function": Injected(f"{BASE} hash=15000000", "function", ("slow_hash",)),
    "programs": Injected(f"{BASE} exec=25", "", ("true", "start_programs", "wait4", "exec")),
    "sleep": Injected(f"{BASE} sleep=30", "call", ("clock_nanosleep", "nanosleep")),
    "first touch": Injected(f"{BASE} fault=100", "page faults", ("touch",)),
    "O_SYNC": Injected(f"{BASE} sync=50", "call", ("write",)),
    "CPU hog": Injected(f"{BASE} hog=40", "waiting for a CPU", ("",)),
    "debug build": Injected(f"./copy-debug {MIB} 65536", "function", ("add_up",)),
    "hash table": Injected(f"{BASE} chains=700", "function", ("look_up",)),
    "name server": Injected(f"{BASE} resolve=30", "call", ("poll",)),
    "readahead": Injected(f"{BASE} cold=1", "call", ("read_cold",), "readahead"),
    "slow disk": Injected(f"{BASE} cold=13", "call", ("read_cold",), "limit"),
}
DISK_MIB, READAHEAD, LIMIT = 32, 8, 100 << 20
"""Size of a device; its smaller readahead, in units of 512 bytes; its limit, B/s, from 100 ms on."""
GROUP = Path("/sys/fs/cgroup/blkio/etude-why")


def main() -> int:
    given = _options()
    lines = [
        "# Causes that were put in",
        "",
        f"`python bench/why.py --pairs {given.pairs} --same {given.same}`, of `examples/why/copy.c`.",
        "",
        "| cause | plain difference | named first | its difference | intervals overlap | others named |",
        "| --- | ---: | --- | ---: | --- | ---: |",
    ]
    lost = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for name in ("copy.c", "Makefile"):
            shutil.copy(ROOT / "examples" / "why" / name, directory)
        subprocess.run(["make", "-s"], check=True)
        Path("copy.data").write_bytes(os.urandom(MIB << 20))
        for test in ("base", "other"):
            Path(test).mkdir()
            for name in ("copy", "copy-debug", "copy.data"):
                (Path(test) / name).symlink_to(Path(name).absolute())
        for name, injected in CAUSES.items():
            if given.only in (None, name):
                found = found_with(name, injected, given.pairs)
                lines.append(row(name, injected, found))
                lost += not is_first(injected, found)
                print(lines[-1], file=sys.stderr)
        same = sum(bool(listed(explained(f"same {n}", BASE, BASE, given.pairs))) for n in range(given.same))
    lines += ["", f"The program against itself: a cause is named in {same} of {given.same} runs."]
    given.output.parent.mkdir(exist_ok=True)
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {given.output}", file=sys.stderr)
    return int(lost > 1)


def explained(name: str, base: str, other: str, pairs: int) -> Why:
    tests = [
        etude.Test(each, tuple(line.split()), directory=os.path.abspath(each))
        for each, line in (("base", base), ("other", other))
    ]
    etude.bench(tests, trials=5, directory=name)
    return etude.why(name, pairs=pairs)


def found_with(name: str, injected: Injected, pairs: int) -> Why:
    """The causes; where a device is changed, both tests read one of their own."""
    if not injected.device:
        return explained(name, BASE, injected.command, pairs)
    with ExitStack() as stack:
        for test in ("base", "other"):
            Path(f"{test}.image").write_bytes(os.urandom(DISK_MIB << 20))
            device = output_of("losetup", "--show", "-f", f"{test}.image")
            stack.callback(output_of, "losetup", "-d", device)
            disk = Path(test) / "copy.disk"
            disk.symlink_to(device)
            stack.callback(disk.unlink)
        if injected.device == "readahead":
            output_of("blockdev", "--setra", str(READAHEAD), device)
        else:
            GROUP.mkdir()
            stack.callback(GROUP.rmdir)
            number = os.minor(os.stat(device).st_rdev)
            (GROUP / "blkio.throttle.read_bps_device").write_text(f"7:{number} {LIMIT}")
            (GROUP / "cgroup.procs").write_text(str(os.getpid()))
            stack.callback((GROUP.parent / "cgroup.procs").write_text, str(os.getpid()))
        return explained(name, injected.command, injected.command, pairs)


def output_of(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def listed(found: Why) -> list[object]:
    return list(found.split.listed) if found.split else []


def is_first(injected: Injected, found: Why) -> bool:
    first = found.split.listed[0].cause if found.split and found.split.listed else None
    if first is None:
        return False
    texts = (first.name, first.caller, first.process)
    return injected.kind in ("", first.kind) and any(n == "" or n in texts for n in injected.names)


def row(name: str, injected: Injected, found: Why) -> str:
    first = found.split.listed[0] if found.split and found.split.listed else None
    plain = f"{found.plain.mean_s * 1e3:.1f} ms"
    if first is None or first.cause is None:
        return f"| {name} | {plain} | none | | | |"
    named = f"{first.cause.kind}: {first.cause.name} {first.cause.caller}".strip()
    right = "" if is_first(injected, found) else " (wrong)"
    holds = "yes" if first.low_s <= found.plain.high_s and found.plain.low_s <= first.high_s else "no"
    span = f"{first.mean_s * 1e3:.1f} ({first.low_s * 1e3:.1f} to {first.high_s * 1e3:.1f}) ms"
    return f"| {name} | {plain} | {named}{right} | {span} | {holds} | {len(listed(found)) - 1} |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--same", type=int, default=10)
    parser.add_argument("--only", choices=sorted(CAUSES))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
