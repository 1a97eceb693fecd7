"""Simulate bisections of known truth, and write bench/bisections/results.md: wrong commits, and trials and seconds
against a binary search whose number of trials an oracle has chosen.

    python bench/bisections.py [--histories N] [--output FILE]

The peer is `git bisect run` with a fixed number of trials of each commit, either of the commit alone or interleaved
with as many of GOOD. For each kind of noise and each ratio of step and noise, the oracle takes the cheaper of both at
the smallest number of trials that names a wrong commit in at most 5 % of the same histories. What is simulated is
appended to FILE.jsonl, and taken up from there.

Exits with 1 where more than 5 % of the answers are wrong, or more than half of the peer's trials are needed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

from etude.bisect.simulated import History, bisect, drawn_history, noise

OUTPUT = Path(__file__).resolve().parent / "bisections" / "results.md"
SMALLEST = 0.008
"""Smallest step of interest: steps are 1 to 10 %."""
COUNTS = tuple(sorted({round(1.5**power) for power in range(17)}))
"""Trials of each commit that the oracle chooses from."""
REPEATS = 2
"""Binary searches of each history, with fresh noise."""
MOST_WRONG, MOST_COST = 0.05, 0.5


def posterior_row(number: int, step: bool) -> dict[str, Any]:
    """One bisection by the posterior."""
    random = np.random.default_rng([20, int(step), number])
    history = drawn_history(random, step=step)
    found = bisect(history, random, smallest=SMALLEST)
    answer = found.answer
    named = answer.kind in ("commit", "range")
    right = named and answer.first <= history.place <= answer.last
    return {
        "number": number,
        "step": history.step,
        "count": history.count,
        "cv": history.cv,
        "kind": history.kind,
        "answer": answer.kind,
        "width": answer.last - answer.first + 1 if named else 0,
        "named": named,
        "right": right,
        "trials": found.trials,
        "builds": found.builds,
        "seconds": found.seconds,
    }


def peer_rows(number: int) -> list[tuple[int, bool, float, float, float]]:
    """Binary searches of a history: trials of each commit, interleaved, share that is right, mean trials, seconds."""
    random = np.random.default_rng([20, 1, number])
    history = drawn_history(random, step=True)
    rows = []
    for trials in COUNTS:
        for interleaved in (False, True):
            found = [binary_search(history, random, trials, interleaved) for _ in range(REPEATS)]
            right, used, seconds = (float(np.mean(values)) for values in zip(*found, strict=True))
            rows.append((trials, interleaved, right, used, seconds))
    return rows


def binary_search(
    history: History, random: np.random.Generator, trials: int, interleaved: bool
) -> tuple[bool, int, float]:
    """Whether a binary search names the commit, its trials, and its duration in seconds.

    The medians of GOOD and BAD, measured first, give the level between them at which a commit counts as bad. A commit
    that does not build is replaced by its neighbour.
    """
    longest = 2 * trials * (math.ceil(math.log2(history.count)) + 8)
    offsets, used, builds = noise(history, random, longest), 0, 2

    def measured(commit: int) -> float:
        nonlocal used
        size = 2 * trials if interleaved else trials
        taken = offsets[used : used + size] if used + size <= longest else noise(history, random, size)
        used += size
        if interleaved:
            return float(np.median(taken[1::2])) + history.level(commit) - float(np.median(taken[::2]))
        return float(np.median(taken)) + history.level(commit)

    bad = measured(history.count - 1)
    good = 0.0 if interleaved else measured(0)
    limit, upward = (bad + good) / 2.0, bad > good
    low, high = 0, history.count - 1
    skipped: set[int] = set()
    while left := [commit for commit in range(low + 1, high) if commit not in skipped]:
        middle = min(left, key=lambda commit: abs(commit - (low + high) / 2.0))
        builds += 1
        if middle in history.broken:
            skipped.add(middle)
        elif (measured(middle) > limit) == upward:
            high = middle
        else:
            low = middle
    return low < history.place <= high, used, used * history.trial_s + builds * history.build_s


def cell_of(row: dict[str, Any]) -> tuple[str, int]:
    """Kind of noise, and ratio of step and noise in steps of a factor of two."""
    return row["kind"], math.floor(math.log2(row["step"] / row["cv"]))


def oracle(
    rows: list[dict[str, Any]], peers: list[list[Any]]
) -> dict[tuple[str, int], tuple[int, bool] | None]:
    """The oracle's choice for each cell: trials of each commit, interleaved; None if none reaches 5 %."""
    cells: dict[tuple[str, int], list[list[Any]]] = defaultdict(list)
    for row, peer in zip(rows, peers, strict=True):
        cells[cell_of(row)].append(peer)
    found: dict[tuple[str, int], tuple[int, bool] | None] = {}
    for cell, members in cells.items():
        best: tuple[float, tuple[int, bool]] | None = None
        for place in range(len(members[0])):
            trials, interleaved = members[0][place][:2]
            wrong = np.mean([1.0 - member[place][2] for member in members])
            cost = float(np.mean([member[place][4] for member in members]))
            if wrong <= MOST_WRONG and (best is None or cost < best[0]):
                best = cost, (trials, interleaved)
        found[cell] = best and best[1]
    return found


def main() -> int:
    given = _options()
    store = given.output.with_suffix(".jsonl")
    store.parent.mkdir(parents=True, exist_ok=True)
    known: dict[tuple[str, int], Any] = {}
    if store.exists():
        for line in store.read_text().splitlines():
            what, number, row = json.loads(line)
            known[what, number] = row
    numbers = range(given.histories)
    flat = range(given.histories // 4)
    jobs = [("step", n) for n in numbers] + [("none", n) for n in flat] + [("peer", n) for n in numbers]
    with Pool(given.jobs) as pool, store.open("a") as file:
        for what, number, row in pool.imap_unordered(_job, [job for job in jobs if job not in known], 4):
            known[what, number] = row
            file.write(json.dumps([what, number, row]) + "\n")
            file.flush()
    rows = [known["step", n] for n in numbers]
    text, worst = report(rows, [known["none", n] for n in flat], [known["peer", n] for n in numbers])
    given.output.write_text(text, encoding="utf-8")
    print(f"wrote {given.output}", file=sys.stderr)
    return int(worst)


def _job(job: tuple[str, int]) -> tuple[str, int, Any]:
    what, number = job
    row = peer_rows(number) if what == "peer" else posterior_row(number, what == "step")
    return what, number, row


def report(
    rows: list[dict[str, Any]], flat: list[dict[str, Any]], peers: list[list[Any]]
) -> tuple[str, bool]:
    """The tables, and whether a figure is missed."""
    chosen = oracle(rows, peers)
    lines = [
        "# Bisections, simulated",
        "",
        f"`python bench/bisections.py --histories {len(rows)}`: histories of 16 to 1,024 commits, a step of 1 to 10 %,",
        "a CV of 0.5 to 5 %, 10 % of the builds broken; a trial takes 1 s, a build 20 s. Smallest step of interest",
        f"{SMALLEST:.1%}, confidence 95 %. *Wrong*: another commit is named (or a range without it).",
        "",
        "| noise | histories | named | wrong | no step seen, or drift | undecided | trials, median | seconds, median |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in (*sorted({row["kind"] for row in rows}), ""):
        members = [row for row in rows if kind in ("", row["kind"])]
        named = [row for row in members if row["named"]]
        wrong = sum(not row["right"] for row in named)
        none = sum(row["answer"] in ("none", "drift") for row in members)
        trials, seconds = (np.median([row[key] for row in members]) for key in ("trials", "seconds"))
        lines.append(
            f"| {kind or 'together'} | {len(members):,} | {len(named):,} | {wrong} ({wrong / len(members):.1%}) "
            f"| {none} | {len(members) - len(named) - none} | {trials:,.0f} | {seconds:,.0f} |"
        )
    blamed = sum(row["named"] for row in flat)
    lines += [
        "",
        f"Without a step: {blamed} of {len(flat)} histories blame a commit ({blamed / max(1, len(flat)):.1%}); "
        f"{sum(row['answer'] == 'none' for row in flat)} see none.",
        "",
        "Against the binary search of the oracle, where it reaches 5 % (sums over the histories of a line; a ratio",
        "below 1: fewer):",
        "",
        "| step over noise | histories | wrong: posterior, peer | trials: posterior, peer | ratio | seconds: ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    shared: dict[int, list[tuple[dict[str, Any], Any]]] = defaultdict(list)
    unreached = 0
    for row, peer in zip(rows, peers, strict=True):
        choice = chosen[cell_of(row)]
        if choice is None:
            unreached += 1
            continue
        taken = next(each for each in peer if tuple(each[:2]) == choice)
        shared[cell_of(row)[1]].append((row, taken))
    every = [pair for pairs in shared.values() for pair in pairs]
    ratios = []
    for name, pairs in [
        *((f"{2.0**ratio:g} to {2.0 ** (ratio + 1):g}", shared[ratio]) for ratio in sorted(shared)),
        ("together", every),
    ]:
        ours, theirs = (
            sum(values) for values in zip(*((row["trials"], peer[3]) for row, peer in pairs), strict=True)
        )
        ours_s, theirs_s = (
            sum(values) for values in zip(*((row["seconds"], peer[4]) for row, peer in pairs), strict=True)
        )
        bad = sum(not row["right"] for row, _ in pairs), sum(1.0 - peer[2] for _, peer in pairs)
        ratios.append(ours / theirs)
        lines.append(
            f"| {name} | {len(pairs)} | {bad[0] / len(pairs):.1%}, {bad[1] / len(pairs):.1%} | {ours:,}, {theirs:,.0f} "
            f"| {ours / theirs:.2f} | {ours_s / theirs_s:.2f} |"
        )
    lines += [
        "",
        f"The oracle finds no number of trials up to {COUNTS[-1]} that reaches 5 % for {unreached} histories.",
    ]
    wrong_share = sum(row["named"] and not row["right"] for row in rows) / len(rows)
    return "\n".join(lines) + "\n", max(wrong_share, blamed / max(1, len(flat))) > MOST_WRONG or ratios[
        -1
    ] > MOST_COST


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
