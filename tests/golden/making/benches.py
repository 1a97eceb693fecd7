"""Results of `etude bench`, written by the project's own writer: engines that let no time pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from etude.errors import EtudeError
from etude.experiment.plan import make_plan
from etude.experiment.run import resume, run
from etude.experiment.test import MetricPattern, Test
from golden.making.machines import NEWER, settle
from support.fakes import World


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


MADE: Mapping[str, Callable[[Path], None]] = {
    f"bench/{make.__name__.replace('_', '-')}": make
    for make in (
        plain, alone, blocks, failed, aborted, timed_out, set_aside, workers, parameters, inner, duet,
        interrupted, resumed, torn,
    )
}  # fmt: skip
