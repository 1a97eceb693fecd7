"""Put causes into a program, let `etude why` find them, and write bench/why/results.md (as root; needs perf and cc).

    python bench/why.py [--pairs N] [--same N] [--only NAME] [--output FILE]
    python bench/why.py --aa 100 [--pairs 5] [--place DIR]
    python bench/why.py --cost 40 [--place DIR]
    python bench/why.py --simulate 2000

For each cause: is it named first, and does its interval overlap that of the plain trials? For the program against
itself (`--same`): in how many runs is any cause named? Exits with 1 where more than one cause is not found.

`--aa`: so many runs of a short program against itself; those with a cause listed, interval of Clopper and Pearson.
`--cost`: so many pairs of two programs each that compute, call, and sleep, on one CPU: times under each instrument over
plain ones, and the change of the ratio of both programs (Hodges and Lehmann, Wilcoxon's interval). Both print a line a
run, and go on in DIR where they were interrupted. `--simulate`: errors, coverage and power of the mean and of that
without outliers, over so many tables of made noise.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import etude
from etude.api.why import Why
from etude.peak.rehearse import binomial_interval
from etude.stats.intervals import t_quantile
from etude.stats.outlying import outlying_rows
from etude.stats.ranks import Shift, wilcoxon
from etude.why.contributions import each_confidence
from etude.why.instrumented_run import kept_trials

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


SHORT = "./copy 8 65536"
COSTS = {
    "computes": ("./copy 1 65536 hash=30000000", "./copy 1 65536 hash=33000000"),
    "calls": ("./copy 40 4096", "./copy 44 4096"),
    "sleeps": ("./copy 1 65536 sleep=100", "./copy 1 65536 sleep=110"),
}
"""Programs of which the second does a tenth more."""


def main() -> int:
    given = _options()
    if given.simulate:
        return simulate(given.simulate)
    if given.aa or given.cost:
        given.place.mkdir(parents=True, exist_ok=True)
        os.chdir(given.place)
        make_program(64)
        return against_itself(given.aa, given.pairs) if given.aa else costs(given.cost)
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
        make_program(MIB)
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


def make_program(mib: int) -> None:
    """Build the program in the working directory, with its data, unless that has been done."""
    if not Path("copy.data").exists():
        for name in ("copy.c", "Makefile"):
            shutil.copy(ROOT / "examples" / "why" / name, ".")
        subprocess.run(["make", "-s"], check=True)
        Path("copy.data").write_bytes(os.urandom(mib << 20))


def measured(name: str, commands: Sequence[str], cpus: tuple[int, ...] | None = None) -> None:
    """Results of commands in a directory, unless it has them."""
    tests = [
        etude.Test(label, tuple(line.split()), cpus=cpus) for label, line in zip("ab", commands, strict=True)
    ]
    if not Path(name).exists():
        etude.bench(tests, trials=5, directory=name)


def against_itself(runs: int, pairs: int) -> int:
    """Runs of a program against itself."""
    measured("same", [SHORT, SHORT])
    wrong = outlying = 0
    for number in range(1, runs + 1):
        found = etude.why("same", output=f"same-{number}", pairs=pairs)
        wrong += bool(listed(found))
        outlying += len(found.split.left_out) if found.split else 0
        low, high = binomial_interval(wrong, number)
        print(
            f"{number} runs of {pairs} pairs: a cause is listed in {wrong}, {wrong / number:.1%} "
            f"({low:.1%} to {high:.1%}); {outlying} pairs left out",
            flush=True,
        )
    return 0


def costs(pairs: int) -> int:
    """The cost of each instrument, and the change of the ratio of two programs under it."""
    cpu = max(os.sched_getaffinity(0))
    print(
        "| programs | instrument | pairs | cost | change of the ratio |\n| --- | --- | ---: | ---: | ---: |"
    )
    for kind, commands in COSTS.items():
        measured(kind, commands, (cpu,))
        found = etude.why(kind, pairs=pairs).measured
        plain = [elapsed_s(kind, name) for name in "ab"]
        rows = {
            f"{instrument}, from outside": [elapsed_s(kind, f"{name}: {instrument}") for name in "ab"]
            for instrument in ("timeline", "calls")
        }
        if [len(side) for side in found.runs] == [pairs] * 2:
            rows["timeline, its own time"] = [
                {block: run.elapsed_s for block, run in enumerate(side, 1)} for side in found.runs
            ]
        for instrument, under in rows.items():
            blocks = sorted(set(plain[0]).intersection(plain[1], *under))
            (p, q), (x, y) = ([[times[b] for b in blocks] for times in sides] for sides in (plain, under))
            cost = wilcoxon([*x, *y], [*p, *q], ratio=True)
            ratios = [[c / d for c, d in zip(*each, strict=True)] for each in ((y, x), (q, p))]
            change = wilcoxon(*ratios, ratio=True)
            print(f"| {kind} | {instrument} | {len(blocks)} | {share(cost)} | {share(change)} |", flush=True)
    return 0


def elapsed_s(results: str, test: str) -> dict[int, float]:
    """Times of a test's trials by block, as a clock sees them from outside."""
    trials = kept_trials(etude.load_results(Path(results, "why")).measurements[test])
    return {block: float(trial.value("elapsed") or 0.0) for block, trial in trials.items()}


def share(found: Shift) -> str:
    """`2.1 % (1.5 to 2.8)`."""
    low, high = ("–" if end is None else f"{100 * (end - 1):.1f}" for end in (found.low, found.high))
    return f"{100 * (found.shift - 1):.1f} % ({low} to {high})"


DELAYS = {"none": (0, 1), "5 sd": (5, 1), "15 sd": (15, 1), "50 sd": (50, 1), "50 sd over all": (50, 20)}
"""Delay of one run in thirty, in standard deviations of a cause, and over how many causes."""
EFFECTS = {5: 7.0, 10: 4.0, 30: 1.8}
"""Size of the true cause in standard deviations, by the number of pairs."""


def simulate(families: int) -> int:
    """Errors, coverage and power, of 20 causes of 10 ms with 2 % of noise in common; the delay is in the true cause."""
    print("| noise | delay | pairs | A/A | coverage | power | A/A | coverage | power | left out |")
    print("| --- | --- |" + " ---: |" * 8)
    for (noise, sd), (name, (delay, over)) in itertools.product(
        (("normal", 0.001), ("lognormal", 0.0031)), DELAYS.items()
    ):
        for pairs, effect in EFFECTS.items():
            drawn, told, left_out = np.random.default_rng(11), np.zeros((2, 3)), 0
            truth = np.zeros(20)
            truth[3] = effect * sd
            for _ in range(families):
                a, b = (_made(drawn, pairs, noise, delay * sd, over) for _ in range(2))
                for robust in (0, 1):
                    none, found = (_ends(each, bool(robust)) for each in (b - a, b - a + truth))
                    told[robust] += (
                        not np.all((none[0] <= 0) & (none[1] >= 0)),
                        np.all((found[0] <= truth) & (truth <= found[1])),
                        found[0][3] > 0,
                    )
                left_out += int(outlying_rows(b - a + truth).sum())
            cells = " | ".join(f"{100 * each / families:.1f}" for each in told.ravel())
            print(f"| {noise} | {name} | {pairs} | {cells} | {left_out / families:.2f} |", flush=True)
    return 0


def _made(
    drawn: np.random.Generator, pairs: int, noise: str, delay_s: float, over: int
) -> NDArray[np.float64]:
    size = (pairs, 20)
    times: NDArray[np.float64] = (
        drawn.normal(1, 0.1, size) if noise == "normal" else drawn.lognormal(0, 0.3, size)
    )
    times = 0.01 * times * drawn.normal(1, 0.02, (pairs, 1))
    times[drawn.random(pairs) < 1 / 30, 3 if over == 1 else slice(None)] += delay_s / over
    return times


def _ends(table: NDArray[np.float64], robust: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the simultaneous intervals of all causes."""
    used = table[~outlying_rows(table)] if robust else table
    level = each_confidence(0.95, table.shape[1]) if robust else 1 - 0.05 / table.shape[1]
    reach = t_quantile(level, len(used) - 1) * used.std(axis=0, ddof=1) / len(used) ** 0.5
    return used.mean(axis=0) - reach, used.mean(axis=0) + reach


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
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--same", type=int, default=10)
    parser.add_argument("--only", choices=sorted(CAUSES))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    for mode in ("--aa", "--cost", "--simulate"):
        parser.add_argument(mode, type=int, metavar="N")
    parser.add_argument("--place", type=Path, default=ROOT / "build" / "why", help="of --aa and --cost")
    given = parser.parse_args()
    given.pairs = given.pairs or (5 if given.aa else 12)
    return given


if __name__ == "__main__":
    sys.exit(main())
