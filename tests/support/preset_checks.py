"""All that is checked of a preset, by what was seen at the target: against its knobs, and against what is
published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from support.distributions import (
    Check,
    Counts,
    dispersion,
    evenly,
    fixed,
    from_law,
    gaps,
    mix,
    occupied,
    rate,
    ratio,
    share,
    whole_numbers,
    zipf,
)
from support.knobs import Knobs, law_of
from support.published import MEAN_WITHIN, Published
from support.seen import Seen

CHOOSING = ("lookup", "getattr", "access")
"""Operations each of which is on a file chosen for it alone."""
COMING_AND_GOING = ("create", "remove", "rename")
OF_ORDER = frozenset(
    {
        "reads of another size",
        "reads that are in no run",
        "writes that append nothing",
        "commits of nothing",
        "batches that are not whole",
        "log writes out of place",
    }
)
"""Checks that ask for the order in which requests were drawn: for a target at which none overtakes another."""
PER_WINDOW = 50
"""Arrivals in a window of which the counts are looked at."""


@dataclass(frozen=True)
class Arrivals:
    """What was asked for, and what a busy machine is forgiven: a share of gaps, how much any gap may be off, and by
    how much counts may vary more."""

    rate: float
    poisson: bool = True
    shape: bool = True
    """Whether gaps and counts are looked at, which only tell of the generator where the machine has time for all."""
    moved: float = 0.1
    late: float = 0.1
    """Of the mean gap."""
    allowance: float = 3.0


@dataclass(frozen=True)
class Load:
    """One load as it was seen."""

    seen: Seen
    """Operations on paths below the file set's place."""
    population: Mapping[str, int]
    """Files that were there before, and their sizes, B, as the target's own disk says."""
    knobs: Knobs
    published: Published
    arrivals: Arrivals | None

    @property
    def logs(self) -> list[str]:
        return [path for path in {*self.seen.paths, *self.population} if name_of(path).startswith("log")]

    @property
    def data(self) -> dict[str, int]:
        """Files that are no logs."""
        logs = set(self.logs)
        return {path: size for path, size in self.population.items() if path not in logs}

    @property
    def drawn(self) -> Seen:
        """What was drawn from the mix: neither batches of a log, nor commits where the mix has none."""
        seen = self.seen
        own = ~np.isin(seen.path, [seen.paths.index(path) for path in self.logs if path in seen.paths])
        return seen.only(own & ((seen.kind != "commit") | ("commit" in self.knobs.mix)))


def name_of(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def checks(load: Load) -> Iterator[Check]:
    """All of them."""
    yield from outcomes(load)
    yield from mixes(load)
    yield from files(load)
    yield from popularity(load)
    yield from reads(load)
    yield from writes(load)
    if load.arrivals is not None:
        yield from arrivals(load.seen.at_ns, load.arrivals)


def outcomes(load: Load) -> Iterator[Check]:
    """Nothing fails: what is meant is there."""
    yield share("operations that failed", int(load.seen.failed.sum()), len(load.seen), 0.0)


def mixes(load: Load) -> Iterator[Check]:
    """Kinds, by the knobs and as published. Whether something comes or goes is drawn so that the number of files
    stays: their sum is what the mix says, and so are both in the long run."""
    counts = load.drawn.counts()
    yield mix(counts, load.knobs.mix, "mix, by knobs")
    if load.published.mix is not None:
        yield mix(counts, load.published.mix, "mix, as published")
    if load.published.reads_per_write is not None:
        reads_, writes_ = counts.get("read", 0), counts.get("write", 0)
        yield ratio("reads : writes", reads_, writes_, load.published.reads_per_write)


def files(load: Load) -> Iterator[Check]:
    """The population, as it was found on the target's disk."""
    sizes = np.array(sorted(load.data.values()), dtype=np.int64)
    law = law_of(load.knobs["sizes"], load.knobs.number("largest"))
    scale = load.knobs.number("scale")
    if law.fixed is not None:
        scaled = {max(round(size * scale), 1): part for size, part in law.fixed.items()}
        yield fixed("sizes of files", sizes, scaled)
    elif law.below is not None:
        yield whole_numbers("sizes of files", sizes, law.below, law.told)
    told = load.published
    if told.mean_bytes is not None:
        mean = law.mean() * scale
        holds = abs(mean / told.mean_bytes - 1) <= MEAN_WITHIN
        yield Check("mean size, by its law", f"{mean:,.0f}", f"{told.mean_bytes:,.0f}", "exact", float(holds))
    if told.smallest is not None and told.largest is not None:
        outside = int(((sizes < told.smallest) | (sizes > told.largest)).sum())
        yield share(f"files not of {told.smallest:,} to {told.largest:,} bytes", outside, len(sizes), 0.0)
    if told.directory_files is not None:
        yield directories(load, told.directory_files)


def directories(load: Load, expected: tuple[int, int]) -> Check:
    """How many files lie in the fullest directory, with those that are not there now."""
    places = Counter(path.rpartition("/")[0] for path in load.data)
    most = round(max(places.values()) * slots(load) / len(load.data))
    holds = expected[0] <= most <= expected[1]
    told = f"{expected[0]:,} to {expected[1]:,}"
    return Check("files in the fullest directory", f"{most:,}", told, "count", float(holds))


def popularity(load: Load) -> Iterator[Check]:
    """Which files are chosen, of those that never come or go: the others are not always there to be chosen."""
    staying = steady(load)
    left_out = 1 - len(staying) / slots(load)
    # Of random reads each is a choice. That one goes on where another ended is chance, and likelier in small files.
    in_runs = load.knobs.number("read_sequential") > 0
    by_kind = {
        "lookups and checks": chosen(load.drawn.of(*CHOOSING), staying),
        "reads": chosen(begun(load.drawn, "read") if in_runs else load.drawn.of("read"), staying),
    }
    exponent, part = load.knobs.zipf("popularity"), load.knobs.share("popularity")
    for kind, counts in by_kind.items():
        if exponent is not None:
            yield zipf(f"popularity by {kind}", counts, exponent, slots(load))
    if exponent is not None and load.published.zipf is not None:
        low, high = load.published.zipf
        yield Check(
            "Zipf's exponent", f"{exponent:g}", f"{low:g} to {high:g}", "knob", float(low <= exponent <= high)
        )
    if part is not None:
        told = load.published.working_set
        both = by_kind["lookups and checks"] + by_kind["reads"]
        distinct, total = int((both > 0).sum()), int(both.sum())
        yield occupied("working set", distinct, total, len(staying), told or part, left_out)
        # Of those that were never met by chance nobody can tell: only where there are next to none.
        if distinct and total / distinct > np.log(distinct) + 14:
            yield evenly("popularity within it", both[both > 0])


def slots(load: Load) -> int:
    """All files, with those that are not there at first."""
    churn, present = load.knobs.number("churn"), load.knobs.number("present")
    return max(round(len(load.data) / (1 - churn + churn * present)), len(load.data))


def steady(load: Load) -> list[str]:
    """Files that were there all the time."""
    moved = load.seen.of(*COMING_AND_GOING)
    gone = {load.seen.paths[path] for path in np.unique(moved.path)}
    return [path for path in load.data if path not in gone]


def chosen(seen: Seen, among: list[str]) -> Counts:
    """How often each of them was."""
    counts = Counter(seen.path.tolist())
    places = {path: number for number, path in enumerate(seen.paths)}
    return np.array([counts.get(places.get(path, -1), 0) for path in among], dtype=np.int64)


def begun(seen: Seen, kind: str) -> Seen:
    """Requests that begin something: all but those that go on where one of the same file ended."""
    some = seen.of(kind)
    return some.only(~np.array(followed(some), dtype=np.bool_)) if len(some) else some


def followed(seen: Seen) -> list[bool]:
    """Of each request whether it goes on where an earlier one of the same file ended. Several may be under way on a
    file; a request that begins at 0 begins anew."""
    open_ends: Counter[tuple[int, int]] = Counter()
    found = []
    for path, offset, size in zip(seen.path.tolist(), seen.offset.tolist(), seen.size.tolist(), strict=True):
        here = (path, offset)
        goes_on = offset > 0 and open_ends[here] > 0
        if goes_on:
            open_ends[here] -= 1
        open_ends[(path, offset + size)] += 1
        found.append(goes_on)
    return found


def reads(load: Load) -> Iterator[Check]:
    """Sizes of reads, and where they are."""
    some = load.drawn.of("read")
    if not len(some):
        return
    known = some.only(some.before >= 0)
    name, _, most = str(load.knobs["read_size"]).partition(":")
    if name in ("whole", "fixed"):
        # A run ends where its file ended when it was begun: appends since then do not count.
        right = np.minimum(int(float(most)), np.maximum(known.before - known.offset, 0))
        wrong = known.size > right if name == "whole" else known.size != right
        yield share("reads of another size", int(wrong.sum()), len(known), 0.0)
    sequential = load.published.sequential_reads
    expected = load.knobs.number("read_sequential")
    if sequential is not None and expected != sequential:
        yield Check("sequential reads", f"{expected:g}", f"{sequential:g}", "knob", 0.0)
    if expected == 1.0:
        strays = int(((some.offset > 0) & ~np.array(followed(some), dtype=np.bool_)).sum())
        yield share("reads that are in no run", strays, len(some), 0.0)
    if expected == 0.0:
        yield from at_random(load, some)


def at_random(load: Load, some: Seen) -> Iterator[Check]:
    """Places of random reads or writes, of files that are long enough to tell: even over all that are aligned."""
    kind = str(some.kind[0])
    step = int(load.knobs.number("alignment"))
    yield share(f"{kind}s that are not aligned", int((some.offset % step != 0).sum()), len(some), 0.0)
    long = some.only(some.before >= 64 * step)
    if len(long) >= 1000:
        # Aligned places 0 … n-1 of each file, as parts of 1.
        places = (long.before - 1) // step + 1
        spread = np.random.default_rng(1).random(len(long))
        parts = (long.offset // step + spread) / places
        yield from_law(f"places of random {kind}s", parts, lambda at: np.clip(at, 0.0, 1.0), "even")


def writes(load: Load) -> Iterator[Check]:
    """Appends, places, durability, logs and commits."""
    some = load.drawn.of("write")
    if not len(some):
        return
    yield share("durable writes", int(some.stable.sum()), len(some), load.knobs.number("stable"))
    appends = load.knobs.number("write_append")
    told = load.published.appends
    if told is not None and told != appends:
        yield Check("appends", f"{appends:g}", f"{told:g}", "knob", 0.0)
    if appends == 1.0:
        known = some.only(some.before >= 0)
        limit = load.knobs.number("append_limit")
        elsewhere = (known.offset != known.before) & (known.before + known.size <= limit)
        yield share("writes that append nothing", int(elsewhere.sum()), len(known), 0.0)
    if appends == 0.0 and load.knobs.number("write_sequential") == 0.0:
        yield from at_random(load, some)
    if load.logs:
        yield from batches(load)
    if "commit" not in load.knobs.mix and load.knobs["commit_at_end"]:
        yield after_a_write(load.seen)


def after_a_write(seen: Seen) -> Check:
    """A commit is of a file that was written since its last one."""
    dirty: set[int] = set()
    idle = commits = 0
    for kind, path in zip(seen.kind.tolist(), seen.path.tolist(), strict=True):
        if kind == "write":
            dirty.add(path)
        elif kind == "commit":
            commits += 1
            idle += path not in dirty
            dirty.discard(path)
    return share("commits of nothing", idle, commits, 0.0)


def batches(load: Load) -> Iterator[Check]:
    """Of each log: writes one after another, of one size, round and round; so many, and then a commit."""
    count = whole = stray = 0
    size, length = int(load.knobs.number("log_write")), int(load.knobs.number("log_batch"))
    for log in load.logs:
        following, written = -1, 0
        for kind, offset, bytes_ in _log_operations(load.seen.on(log)):
            if kind == "commit":
                count, whole = count + 1, whole + (written == length)
                written = 0
            elif kind == "write":
                stray += bytes_ != size or offset not in (following, 0) or (following < 0 and offset > 0)
                following, written = offset + bytes_, written + 1
    yield share("batches that are not whole", count - whole, count, 0.0)
    yield share("log writes out of place", stray, max(count * length, 1), 0.0)
    told = load.published.log_batch_bytes
    if told is not None:
        yield Check(
            "bytes of a batch", f"{size * length:,}", f"{told:,}", "knob", float(size * length == told)
        )
    yield share("batches per operation", count, len(load.drawn), 1 / load.knobs.number("log_every"))


def _log_operations(seen: Seen) -> Iterator[tuple[str, int, int]]:
    yield from zip(seen.kind.tolist(), seen.offset.tolist(), seen.size.tolist(), strict=True)


def arrivals(at_ns: Counts, asked: Arrivals) -> Iterator[Check]:
    """When they came."""
    yield rate("rate", at_ns, asked.rate, poisson=asked.poisson)
    if not asked.shape:
        return
    late_ns = asked.late * 1e9 / asked.rate
    yield gaps("gaps", at_ns, asked.rate, poisson=asked.poisson, moved=asked.moved, late_ns=late_ns)
    if asked.poisson:
        yield dispersion("dispersion of counts", at_ns, PER_WINDOW, asked.allowance)
