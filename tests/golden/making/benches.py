"""Results of `etude bench`, written by the project's own writer: engines that let no time pass."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from golden.making.machines import MACHINE, NEWER, settle
from support.builders import measurement, results_directory
from support.fakes import World
from support.pages import hostile

from etude.api import make_plan
from etude.errors import EtudeError
from etude.experiment.plan import to_document
from etude.experiment.run import resume, run
from etude.experiment.test import MetricPattern, Test
from etude.results.histograms import encode


def times(mean: float, seed: int, spread: float = 0.02) -> Iterator[float]:
    """Elapsed seconds, lognormal."""
    generator = np.random.default_rng(seed)
    while True:
        yield round(mean * generator.lognormal(0.0, spread), 9)


def answers(mean: float, seed: int, **changes: Any) -> Iterator[dict[str, Any]]:
    """Rows with more metrics than the engine of the tests has by itself."""
    for elapsed in times(mean, seed):
        system, faults = [round(elapsed / 10, 9), "s"], [int(elapsed * 1e4), "1"]
        metrics = {"system": system, "peak_memory": [1 << 20, "B"], "minor_faults": faults}
        cycles = {"cycles": [None, "1", "no such event on this machine (ENOENT)"]}
        yield {"elapsed": elapsed, "metrics": metrics | cycles, **changes}


def bench(path: Path, world: World, *tests: Test, **options: Any) -> Path:
    """An experiment; a world that ends it leaves it as it is."""
    options = {"trials": 6, "seed": 1, "name": path.name} | options
    with suppress(EtudeError):
        run(
            make_plan(tests, **options),
            path,
            make_engine=world.make_engine,
            verb="bench",
            command_line=["etude bench", *(test.name for test in tests)],
            monitor=None,
        )
    return path


def plain(path: Path) -> None:
    world = World({"a": answers(0.010, 1), "b": answers(0.012, 2)})
    settle(bench(path, world, Test("a", ("a", "-x")), Test("b", ("b",)), trials=12))


def alone(path: Path) -> None:
    world = World({"a": answers(0.5, 3)})
    settle(bench(path, world, Test("gzip -1", ("a",)), trials=10))


def blocks(path: Path) -> None:
    """Three tests, the reference against itself, and the empty shell."""
    found = {"one": times(0.02, 4), "two": times(0.022, 50), "three": times(0.03, 51)}
    shell = times(0.004, 52)
    world = World({"/bin/sh": lambda launch: next(found.get(launch.workers[0].argv[-1], shell))})
    tests = [Test(name, ("/bin/sh", "-c", name)) for name in found]
    settle(bench(path, world, *tests, trials=8, shell="/bin/sh", again_every=2))


def failed(path: Path) -> None:
    def odd(launch: Any) -> dict[str, Any]:
        number = next(count)
        ends = {3: {"exit_status": 3, "stderr": "no space\n"}, 5: {"exit_status": None, "signal": 9}}
        return {"elapsed": 0.01 + 0.001 * (number % 4), **ends.get(number, {})}

    count = iter(range(1, 99))
    world = World({"a": odd, "b": times(0.02, 5)})
    settle(bench(path, world, Test("a", ("a",)), Test("b", ("b",)), trials=6, ignore_failure=True))


def aborted(path: Path) -> None:
    world = World({"a": iter([0.1, 0.1, {"exit_status": 1, "stderr": "wrong\n"}]), "b": times(0.2, 6)})
    settle(bench(path, world, Test("a", ("a",)), Test("b", ("b",)), trials=6))


def timed_out(path: Path) -> None:
    slow = {"elapsed": 2.0, "timed_out": True, "exit_status": None, "signal": 15}
    world = World({"a": iter([0.5, slow, *[0.5] * 9])})
    settle(bench(path, world, Test("a", ("a",), timeout_s=2.0), trials=4, ignore_failure=True))


def set_aside(path: Path) -> None:
    """A first run that warms the caches."""
    world = World({"a": times(0.03, 7), "b": times(0.04, 8)})
    warm = {"cool": "warm", "data": ()}
    settle(bench(path, world, Test("a", ("a",), **warm), Test("b", ("b",), **warm), trials=5))


def workers(path: Path) -> None:
    world = World({"a": answers(0.5, 9), "b": answers(0.7, 10)})
    tests = (Test("a", ("a",), workers=3), Test("b", ("b",), workers=3, cpus=(0, 1, 2)))
    settle(bench(path, world, *tests, trials=5))


def parameters(path: Path) -> None:
    """A sweep over sizes and a word, with a metric of the program's own."""
    world, tests = World({}), []
    found: dict[str, Any] = {}
    for place, size in enumerate(("4KiB", "16KiB", "64KiB", "1MiB")):
        for way in ("direct", "cached"):
            name = f"{size}-{way}"
            rate = 100.0 * (place + 1) * (2 if way == "cached" else 1)
            found[name] = printed(0.1 * (place + 1), rate, seed=place * 2 + (way == "direct"))
            pattern = MetricPattern("rate", r"rate ([\d.]+)", "MB/s")
            tests.append(Test(name, (name,), parameters={"size": size, "way": way}, metrics=(pattern,)))
    world.times = found
    settle(bench(path, world, *tests, trials=5, schedule="in-turn"))


def printed(mean: float, rate: float, seed: int) -> Iterator[dict[str, Any]]:
    for number, elapsed in enumerate(times(mean, seed)):
        text = f"done\nrate {rate + number:.1f}\n" if number != 2 else "nothing\n"
        yield {"elapsed": elapsed, "stdout": text}


def inner(path: Path) -> None:
    world = World({"a": times(0.0002, 11)})
    settle(bench(path, world, Test("a", ("a",), inner=50), trials=6))


def duet(path: Path) -> None:
    world = World({"a": times(0.2, 12), "b": times(0.21, 13)})
    settle(bench(path, world, Test("a", ("a",)), Test("b", ("b",)), trials=6, schedule="duet"))


def interrupted(path: Path) -> None:
    """Ended by a signal in its eighth launch."""
    settle(_interrupted(path))


def _interrupted(path: Path) -> Path:
    world = World({"a": times(0.1, 14), "b": times(0.12, 15)}, after=at(8, lambda w: w.signal(15)))
    return bench(path, world, Test("a", ("a",)), Test("b", ("b",)), trials=8)


def resumed(path: Path) -> None:
    """The same, gone on with after a boot."""
    _interrupted(path)
    world = World({"a": times(0.1, 16), "b": times(0.12, 17)})
    resume(path, make_engine=world.make_engine)
    settle(path)
    document = json.loads((path / "experiment.json").read_text())
    document["sittings"][1]["machine"] = NEWER
    (path / "experiment.json").write_text(json.dumps(document, indent=1) + "\n")


def torn(path: Path) -> None:
    """Killed in the middle of a line."""
    settle(_interrupted(path))
    file = path / "a" / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-40])


def at(number: int, act: Callable[[World], None]) -> Callable[[int, World], None]:
    return lambda count, world: act(world) if count == number else None


# --- rows by hand: what no engine of the tests says ---------------------------------------------------


def cooled(path: Path) -> None:
    """Caches that were dropped, and once not as declared."""
    cache = {"declared": "drop", "performed": "drop", "wrong": None, "cooling_s": 0.25, "files": 10}
    cache |= {"bytes": 1 << 20, "resident_bytes": 0, "resident_before_bytes": 1 << 20, "names_cached": None}
    rows = []
    for trial in range(1, 9):
        told = cache if trial != 4 else cache | {"resident_bytes": 1 << 18, "wrong": "256 KiB are in memory"}
        rows.append(measurement("read", trial, 0.5 + 0.01 * (trial % 3), cache=told, host="lab-1"))
    warm = [
        measurement("again", trial, 0.05 + 0.001 * (trial % 4), cache={"declared": "none", "performed": None})
        for trial in range(1, 9)
    ]
    by_hand(path, {"read": rows, "again": warm})


def windowed(path: Path) -> None:
    """What a server's clients saw, over time, with histograms."""
    generator, rows = np.random.default_rng(20), []
    for trial in range(1, 7):
        windows = []
        for _ in range(3):
            values = np.sort(generator.lognormal(math.log(2e6), 0.5, 200).astype(np.int64))
            latency = encode(values, np.ones(200, dtype=np.int64))
            counts = {"offered": 205, "started": 205, "completed": 200, "failed": 5}
            windows.append({"duration_s": 1.0, **counts, "latency": latency, "by": {"read": counts}})
        metrics = {"elapsed": [3.0, "s"], "rate": [200.0 + trial, "1/s"]}
        rows.append(measurement("server", trial, metrics=metrics, windows=windows))
    by_hand(path, {"server": rows})


def told(path: Path) -> None:
    """All that a line may have beside the usual: kernel messages, throttling, notes, several commands, hosts."""
    rows = []
    for trial in range(1, 6):
        for worker, host in enumerate(("lab-1", "lab-2")):
            for command in ("make", "make install"):
                first = worker == 0 and command == "make"
                more: dict[str, Any] = {"rows": 4, "offset_ns": 1500 * worker, "offset_error_ns": 200}
                if first and trial == 2:
                    more |= {"kernel": [{"ns": 5, "level": 3, "text": "I/O error"}], "throttled": 2}
                metrics = {"elapsed": [1.0 + 0.01 * trial + worker, "s"], "user": [0.5, "s"], "system": [0.2, "s"]}
                if first:
                    metrics |= {"tree_cpu": [2.5, "s"], "cycles": [None, "1", "not counted"]}
                changes = {"worker": worker, "host": host, "command": command.split(), "start_ns": trial * 10**10}
                rows.append(measurement("build", trial, metrics=metrics, notes=["odd"], **changes, **more))
    entry = {"name": "build", "directory": "build", "role": "test", "parameters": {}, "workers": 2}
    by_hand(path, {"build": rows}, tests=[entry])


def warned(path: Path) -> None:
    """Drift, outliers, two levels, and a shape that is none of a bell."""
    generator = np.random.default_rng(21)
    noise = generator.lognormal(0.0, 0.01, (4, 40))
    drift = 0.1 * (1 + 0.004 * np.arange(40)) * noise[0]
    outliers = 0.1 * noise[1]
    outliers[[7, 23]] *= 2.5
    levels = np.where(generator.random(40) < 0.4, 0.12, 0.1) * noise[2]
    steady = 0.1 * noise[3]
    samples = {"drift": drift, "outliers": outliers, "levels": levels, "steady": steady}
    rows = {
        name: [
            measurement(name, trial, float(value), order=order, start_ns=(4 * trial + order) * 10**9)
            for trial, value in enumerate(values, 1)
        ]
        for order, (name, values) in enumerate(samples.items())
    }
    by_hand(path, rows, machine={"before": MACHINE, "after": NEWER})


def boots(path: Path) -> None:
    """Three sittings of one test, each of its own boot, that lie apart."""
    rows, sittings = [], []
    generator = np.random.default_rng(22)
    for sitting, level in enumerate((0.10, 0.104, 0.099), 1):
        name = f"boot-{sitting}"
        start, end = (f"2026-01-0{sitting}T{hour}:00:00Z" for hour in (10, 11))
        sittings.append({"sitting": sitting, "boot_id": name, "host": "lab-1", "start": start, "end": end})
        for number in range(8):
            value = float(level * generator.lognormal(0, 0.005))
            at = {"sitting": sitting, "boot_id": name, "start_ns": number * 10**9}
            rows.append(measurement("sort", 8 * (sitting - 1) + number + 1, value, **at))
    by_hand(path, {"sort": rows}, sittings=sittings)


def older(path: Path) -> None:
    """The least that the first writers wrote: members that came later are not there."""
    rows = {"sort": [measurement("sort", n, 0.1 + n / 1000) for n in range(1, 6)]}
    results_directory(path, rows, plan=plan_of(path.name, rows))


def newer(path: Path) -> None:
    older(path)
    text = (path / "experiment.json").read_text()
    (path / "experiment.json").write_text(text.replace('"version": 1', '"version": 2'))


def spoilt(path: Path) -> None:
    """A line in the middle that is no measurement."""
    older(path)
    file = path / "sort" / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1].replace('"trial": 2', '"trial": "two"'), *lines[2:]]))


def markup(path: Path) -> None:
    hostile(path)


def by_hand(path: Path, rows: Mapping[str, Any], **changes: Any) -> None:
    sitting = {"sitting": 1, "boot_id": "boot", "host": "lab-1", "start": "2026-01-01T10:00:00Z"}
    members: dict[str, Any] = {"name": path.name, "verb": "bench", "machine": {"before": MACHINE, "after": MACHINE}}
    members |= {"sittings": [sitting | {"end": "2026-01-01T10:05:00Z"}], "command_line": ["etude bench", *rows]}
    results_directory(path, rows, **(members | {"plan": plan_of(path.name, rows)} | changes))


def plan_of(name: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, as `etude bench` notes it."""
    return to_document(make_plan([Test(test, (test,)) for test in rows], name=name, seed=1))


MADE: Mapping[str, Callable[[Path], None]] = {
    f"bench/{make.__name__.replace('_', '-')}": make
    for make in (
        plain, alone, blocks, failed, aborted, timed_out, set_aside, workers, parameters, inner, duet,
        interrupted, resumed, torn, cooled, windowed, told, warned, boots, older, newer, spoilt, markup,
    )
}  # fmt: skip
