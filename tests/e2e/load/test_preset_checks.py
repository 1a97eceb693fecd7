"""All checks of a preset together, on loads made here: a right one passes, and each fault is noticed by its check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from support.knobs import Knobs, law_of, read_knobs
from support.preset_checks import Arrivals, Load, checks, followed
from support.published import PUBLISHED
from support.seen import Operation, collect

pytestmark = pytest.mark.beside
RATE = 1000.0
COMMON = {
    "scale": 1.0,
    "largest": float(1 << 50),
    "churn": 0.0,
    "present": 0.5,
    "alignment": 8192,
    "stable": 0.0,
    "write_append": 0.0,
    "write_sequential": 0.0,
    "commit_at_end": False,
    "append_limit": 131072,
}
WEB = Knobs(
    COMMON
    | {
        "mix": {"read": 60, "lookup": 20, "getattr": 20},
        "sizes": "tailed:2850:1.2:0.1:20000:1.3",
        "largest": 4194304,
        "popularity": "zipf:0.75",
        "read_size": "whole:32768",
        "read_sequential": 1.0,
    }
)
DB_TP = Knobs(
    COMMON
    | {
        "mix": {"read": 2, "write": 1},
        "sizes": "fixed:67108864",
        "popularity": "uniform",
        "read_size": "fixed:8192",
        "read_sequential": 0.0,
        "log_write": 32768,
        "log_batch": 8,
        "log_every": 48.0,
    }
)
SFS97 = Knobs(
    COMMON
    | {
        "mix": {**PUBLISHED["specsfs97"].mix},  # type: ignore[dict-item]
        "sizes": "table:1024=33,2048=21,4096=13,8192=10,16384=8,32768=5,65536=4,131072=3,262144=2,1048576=1",
        "popularity": "share:0.1",
        "read_size": "fixed:8192",
        "read_sequential": 0.0,
        "churn": 0.04,
    }
)
MAIL = Knobs(
    COMMON
    | {
        "mix": {"read": 35, "write": 35, "lookup": 30},
        "sizes": "tailed:2250:1.1:0.08:9000:1.3",
        "largest": 1048576,
        "popularity": "zipf:1.3",
        "read_size": "whole:32768",
        "read_sequential": 1.0,
        "write_append": 1.0,
        "commit_at_end": True,
    }
)


def arrival_times(rng: np.random.Generator, total: int) -> list[int]:
    return [int(at) for at in np.cumsum(rng.exponential(1e9 / RATE, total))]


def kinds(rng: np.random.Generator, knobs: Knobs, total: int) -> list[str]:
    names, weights = zip(*knobs.mix.items(), strict=True)
    return [str(kind) for kind in rng.choice(names, total, p=np.array(weights) / sum(weights))]


def tailed(rng: np.random.Generator, files: int, text: str, largest: float) -> list[int]:
    """Draws by inverting the law on a grid, which is another way than the generator's."""
    law = law_of(text, largest)
    assert law.below is not None
    grid = np.geomspace(1.0, largest, 2_000_000)
    return [int(size) for size in np.ceil(np.interp(rng.random(files), law.below(grid), grid))]


def zipf_files(rng: np.random.Generator, files: int, exponent: float, total: int) -> list[int]:
    weights = np.arange(1, files + 1, dtype=float) ** -exponent
    return [int(each) for each in rng.permutation(files)[rng.choice(files, total, p=weights / weights.sum())]]


def loaded(name: str, knobs: Knobs, operations: list[Operation], population: dict[str, int]) -> Load:
    return Load(collect(operations, population), population, knobs, PUBLISHED[name], Arrivals(RATE))


def web(seed: int = 1, total: int = 30_000, files: int = 2000) -> Load:
    rng = np.random.default_rng(seed)
    sizes = tailed(rng, files, str(WEB["sizes"]), 4194304)
    paths = [f"d{number // 36}/f{number}" for number in range(files)]
    picks = iter(zipf_files(rng, files, 0.75, total))
    runs: list[tuple[int, int]] = []
    operations = []
    for at, kind in zip(arrival_times(rng, total), kinds(rng, WEB, total), strict=True):
        if kind != "read":
            operations.append(Operation(at, kind, paths[next(picks)]))
            continue
        goes_on = runs and rng.random() < 0.7
        file, offset = runs.pop(int(rng.integers(len(runs)))) if goes_on else (next(picks), 0)
        size = min(32768, sizes[file] - offset)
        if offset + size < sizes[file]:
            runs.append((file, offset + size))
        operations.append(Operation(at, kind, paths[file], offset, size, before=sizes[file]))
    return loaded("web", WEB, operations, dict(zip(paths, sizes, strict=True)))


def db_tp(seed: int = 2, total: int = 30_000) -> Load:
    rng = np.random.default_rng(seed)
    operations, log = [], 0
    for at, kind in zip(arrival_times(rng, total), kinds(rng, DB_TP, total), strict=True):
        offset = 8192 * int(rng.integers(8192))
        operations.append(Operation(at, kind, f"d1/f{rng.integers(8)}", offset, 8192, before=1 << 26))
        if rng.random() < 1 / 48:
            for _ in range(8):
                operations.append(Operation(at, "write", "log0", log, 32768, before=1 << 26))
                log = (log + 32768) % (1 << 26)
            operations.append(Operation(at, "commit", "log0"))
    population = {f"d1/f{number}": 1 << 26 for number in range(8)} | {"log0": 1 << 26}
    return replace(loaded("db_tp", DB_TP, operations, population), arrivals=None)


def specsfs97(seed: int = 3, total: int = 60_000, files: int = 4000) -> Load:
    rng = np.random.default_rng(seed)
    law = law_of(str(SFS97["sizes"])).fixed
    assert law is not None
    sizes = [
        int(size) for size in rng.choice(list(law), files, p=np.array(list(law.values())) / sum(law.values()))
    ]
    paths = [f"d{number // 2000}/f{number}" for number in range(files)]
    there = [number for number in range(files) if number % 25 or rng.random() < 0.5]
    chosen = rng.permutation(files)[: files // 10]
    chosen = chosen[np.isin(chosen, there)]
    operations = []
    for at, kind in zip(arrival_times(rng, total), kinds(rng, SFS97, total), strict=True):
        file = int(rng.choice(chosen))
        offset = 8192 * int(rng.integers((sizes[file] - 1) // 8192 + 1))
        size = min(8192, sizes[file] - offset)
        if kind in ("read", "write"):
            operations.append(Operation(at, kind, paths[file], offset, size, before=sizes[file]))
        else:
            operations.append(
                Operation(at, kind, paths[file] if kind not in ("create", "remove") else "d0/new")
            )
    return loaded("specsfs97", SFS97, operations, {paths[number]: sizes[number] for number in there})


def mail(seed: int = 4, total: int = 20_000, files: int = 3000) -> Load:
    rng = np.random.default_rng(seed)
    lengths = tailed(rng, files, str(MAIL["sizes"]), 1048576)
    population = {f"d{number // 500}/f{number}": lengths[number] for number in range(files)}
    paths = list(population)
    picks = iter(zipf_files(rng, files, 1.3, total))
    operations = []
    for at, kind in zip(arrival_times(rng, total), kinds(rng, MAIL, total), strict=True):
        file = next(picks)
        before = lengths[file]
        if kind == "read":
            operations.append(Operation(at, kind, paths[file], 0, min(32768, before), before=before))
        elif kind == "write":
            offset = before if before + 3000 <= 131072 else 0
            lengths[file] = max(before, offset + 3000)
            operations.append(Operation(at, kind, paths[file], offset, 3000, before=before))
            operations.append(Operation(at, "commit", paths[file]))
        else:
            operations.append(Operation(at, kind, paths[file]))
    return replace(loaded("mail", MAIL, operations, population), arrivals=None)


def refused(load: Load) -> set[str]:
    return {check.name for check in checks(load) if not check.holds}


@pytest.mark.parametrize("make", [web, db_tp, specsfs97, mail], ids=lambda make: make.__name__)
def test_a_right_load_passes_all_checks(make: Callable[..., Load]) -> None:
    for seed in (11, 12, 13):
        found = list(checks(make(seed)))
        assert len(found) >= 8
        assert [check for check in found if not check.holds] == []


def altered(load: Load, **arrays: np.ndarray) -> Load:
    return replace(load, seen=replace(load.seen, **arrays))


def some_of(load: Load, kind: str, part: float) -> np.ndarray:
    mask = (load.seen.kind == kind) & (np.random.default_rng(7).random(len(load.seen)) < part)
    assert mask.any()
    return mask


def test_each_fault_of_a_web_load_is_noticed() -> None:
    load = web()
    seen = load.seen
    moved = np.where(some_of(load, "read", 0.05), "getattr", seen.kind)
    assert "mix, by knobs" in refused(altered(load, kind=moved))
    failed = seen.failed.copy()
    failed[5] = True
    assert refused(altered(load, failed=failed)) == {"operations that failed"}
    offset = np.where(some_of(load, "read", 0.001), 1 << 20, seen.offset)
    assert "reads that are in no run" in refused(altered(load, offset=offset))
    size = np.where(some_of(load, "read", 0.001), 40_000, seen.size)
    assert "reads of another size" in refused(altered(load, size=size))
    larger = {path: round(1.3 * size) for path, size in load.population.items()}
    assert refused(replace(load, population=larger)) == {"sizes of files"}
    other = Knobs({**WEB.values, "popularity": "zipf:0.85"})
    assert refused(replace(load, knobs=other)) == {"popularity by lookups and checks", "popularity by reads"}
    assert "Zipf's exponent" in refused(replace(load, knobs=Knobs({**WEB.values, "popularity": "zipf:0.95"})))
    wrong_mean = Knobs({**WEB.values, "sizes": "tailed:2500:1.2:0.1:20000:1.4"})
    assert "mean size, by its law" in refused(replace(load, knobs=wrong_mean))
    clock = (np.arange(len(seen)) * 1e9 / RATE).astype(np.int64)
    assert refused(altered(load, at_ns=clock)) == {"gaps", "dispersion of counts"}
    slow = (seen.at_ns * 1.05).astype(np.int64)
    assert refused(altered(load, at_ns=slow)) == {"rate"}


def test_each_fault_of_a_database_load_is_noticed() -> None:
    load = db_tp()
    seen = load.seen
    log = seen.paths.index("log0")
    kind = np.where(some_of(load, "write", 0.2) & (seen.path != log), "read", seen.kind)
    assert refused(altered(load, kind=kind)) == {"mix, by knobs", "reads : writes"}
    first = int(np.argmax((seen.path == log) & (seen.kind == "write")))
    kept = np.arange(len(seen)) != first
    assert "batches that are not whole" in refused(replace(load, seen=seen.only(kept)))
    near = np.where(seen.kind == "read", seen.offset // 2 // 8192 * 8192, seen.offset)
    assert refused(altered(load, offset=near)) == {"places of random reads"}
    offset = seen.offset.copy()
    offset[np.flatnonzero(seen.kind == "read")[0]] += 1
    assert "reads that are not aligned" in refused(altered(load, offset=offset))
    stable = seen.stable.copy()
    stable[first] = stable[int(np.argmax((seen.path != log) & (seen.kind == "write")))] = True
    assert refused(altered(load, stable=stable)) == {"durable writes"}
    rarer = Knobs({**DB_TP.values, "log_every": 64.0})
    assert refused(replace(load, knobs=rarer)) == {"batches per operation"}
    assert refused(replace(load, knobs=Knobs({**DB_TP.values, "log_batch": 4}))) >= {"bytes of a batch"}


def test_each_fault_of_a_file_server_load_is_noticed() -> None:
    load = specsfs97()
    assert "working set" in refused(
        replace(
            load,
            knobs=Knobs({**SFS97.values, "popularity": "share:0.1"}),
            published=replace(load.published, working_set=0.12),
        )
    )
    few = {path: size for path, size in load.population.items() if size != 32768}
    assert "sizes of files" in refused(replace(load, population=few))
    odd = load.population | {"d0/odd": 1025}
    assert "sizes of files" in refused(replace(load, population=odd))
    seen = load.seen
    most = int(seen.of("read").path[0])
    path = np.where(
        (seen.kind == "lookup") & (np.random.default_rng(1).random(len(seen)) < 0.05), most, seen.path
    )
    assert "popularity within it" in refused(altered(load, path=path))
    kind = np.where(some_of(load, "commit", 0.4), "fsinfo", seen.kind)
    assert {"mix, by knobs", "mix, as published"} <= refused(altered(load, kind=kind))


def test_each_fault_of_a_mail_load_is_noticed() -> None:
    load = mail()
    seen = load.seen
    offset = np.where(some_of(load, "write", 0.002) & (seen.before < 100_000), 1, seen.offset)
    assert refused(altered(load, offset=offset)) == {"writes that append nothing"}
    kind = np.where(some_of(load, "write", 0.002), "getattr", seen.kind)
    assert "commits of nothing" in refused(altered(load, kind=kind))
    told = replace(load.published, appends=0.5)
    assert refused(replace(load, published=told)) == {"appends"}
    small = replace(load.published, directory_files=(600, 900))
    assert refused(replace(load, published=small)) == {"files in the fullest directory"}


def test_requests_that_go_on_are_told_from_those_that_begin() -> None:
    at = [("a", 0, 10), ("a", 10, 10), ("b", 10, 10), ("a", 0, 10), ("a", 10, 5), ("a", 10, 5), ("a", 15, 5)]
    seen = collect([Operation(n, "read", path, offset, size) for n, (path, offset, size) in enumerate(at)])
    assert followed(seen) == [False, True, False, False, True, False, True]


def test_knobs_are_read_as_they_are_shown() -> None:
    shown = 'name = "web"\n# a comment\nmix = { read = 60, lookup = 0 }\n\npopularity = "zipf:0.75"\nfiles = 1000\n'
    knobs = read_knobs(shown)
    assert knobs.mix == {"read": 60.0}
    assert knobs.zipf("popularity") == 0.75
    assert knobs.share("popularity") is None
    assert knobs.number("files") == 1000


@pytest.mark.parametrize(
    ("text", "largest", "mean"),
    [
        ("fixed:4096", 1e15, 4096),
        ("uniform:500:9999", 1e15, 5249.5),
        ("table:1=1,3=3", 1e15, 2.5),
        ("lognormal:1000:1", 1e15, 1000 * np.exp(0.5) + 0.5),
        ("lognormal:1000:0.001", 1e15, 1000.5),
    ],
)
def test_means_of_laws(text: str, largest: float, mean: float) -> None:
    assert law_of(text, largest).mean() == pytest.approx(mean, rel=1e-3)


def test_a_law_with_a_tail_has_the_mean_of_its_draws() -> None:
    rng = np.random.default_rng(2)
    tail = rng.random(2_000_000) < 0.1
    body = 2000 * np.exp(rng.standard_normal(2_000_000))
    keep = tail | (body <= 20_000)
    tail, body = tail[keep], body[keep]
    share = (
        0.1
        * (1 - 0.0)
        / (0.1 + 0.9 * float((2000 * np.exp(rng.standard_normal(2_000_000)) <= 20_000).mean()))
    )
    drawn = np.where(tail, 20_000 * (1 - rng.random(len(body))) ** (-1 / 1.5), body)
    drawn = drawn[drawn <= 1e6]
    weight = np.where(drawn > 20_000, 0.1 / share, 0.9 / (1 - share))
    expected = float((drawn * weight).sum() / weight.sum())
    assert law_of("tailed:2000:1:0.1:20000:1.5", 1e6).mean() == pytest.approx(expected, rel=0.02)
