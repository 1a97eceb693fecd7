"""Simulate the shipped rules, and write what they cover and how often they cry wolf as Markdown.

    python bench/statistics/run.py --record           # results.md; docs/explanation/statistics.md has extracts of it
    python bench/statistics/run.py [--quick] [--only SECTION] [-o FILE] [--replications N] [--seed N]

Takes some minutes; with --quick, which only shows that everything runs, some seconds. A section is named as its
function is. Each has a generator of its own, so that one can be run again by itself: with --record only its tables are
replaced.
"""

from __future__ import annotations

import os
import re
import sys
import time
import zlib
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small: threads only wait for each other

import numpy as np
from numpy.random import Generator

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows, tables
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # support: series

import any_warning
import comparisons
import coverage
from coverage import NEW

from rows import options, paragraph, standard_error

QUICK, FULL = 20, 4000

RESULTS = Path(__file__).resolve().parent / "results.md"

Section = Callable[[Generator, int], list[str]]


SECTIONS: tuple[tuple[Section, int], ...] = (
    (coverage.mean_rule, 5),
    (coverage.ratio_rule, 5),
    (coverage.fixed, 1),
    (coverage.kinds, 1),
    (comparisons.independent, 1),
    (comparisons.designs, 1),
    (comparisons.equivalence, 1),
    (comparisons.resampling, 1),
    (comparisons.merged, 1),
    (comparisons.families, 1),
    (comparisons.plans, 1),
    (any_warning.flags, 1),
    (any_warning.any_warning_at_all, 1),
    (any_warning.warm_up, 1),
    (any_warning.trends, 1),
    (any_warning.shapes, 1),
    (coverage.levels, 1),
    (comparisons.sittings, 1),
    (coverage.level_crossings, 1),
)
"""What is simulated, and how many times as often as was asked for: the rules are vectorised, the others are not."""


def main() -> int:
    """Run the sections, each with a generator of its own, and write the page."""
    given = _options()
    n = given.replications or (QUICK if given.quick else FULL)
    chosen = [(section, times) for section, times in SECTIONS if given.only in (None, section.__name__)]
    if not chosen:
        names = ", ".join(section.__name__ for section, _ in SECTIONS)
        print(f"no section is named {given.only!r}; they are {names}", file=sys.stderr)
        return 2
    lines = _head(given.seed, n)
    for section, times in chosen:
        begin = time.monotonic()
        seed = np.random.SeedSequence([given.seed, zlib.crc32(section.__name__.encode())])
        lines += section(np.random.default_rng(seed), times * n)
        print(f"{section.__name__}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    text = "\n".join(lines).rstrip() + "\n"
    if given.record:
        record(text, given.only is not None)
    elif given.output is None:
        sys.stdout.write(text)
    else:
        given.output.write_text(text, encoding="utf-8")
    return 0


def record(text: str, part: bool) -> None:
    """Write results.md (or, of a part, its sections into it)."""
    if part:
        head, *sections = _sections(RESULTS.read_text(encoding="utf-8"))
        _, *new = _sections(text)
        of = {section.splitlines()[0]: section for section in new}
        known = [section.splitlines()[0] for section in sections]
        sections = [of.get(name, section) for name, section in zip(known, sections, strict=True)]
        sections += [section for name, section in of.items() if name not in known]
        text = "\n\n".join([head, *sections]) + "\n"
    RESULTS.write_text(text, encoding="utf-8")


def _sections(text: str) -> list[str]:
    return [section.strip() for section in re.split("^(?=## )", text, flags=re.MULTILINE)]


def _head(seed: int, replications: int) -> list[str]:
    error = 100 * standard_error(0.05, replications)
    return [
        "# What the rules find, and what they find falsely",
        "",
        *paragraph(
            f"Written by `bench/statistics/run.py --seed {seed} --replications {replications}`",
            f"(numpy {np.__version__}); not to be edited.",
            f"Simulations on synthetic series, {replications} replications a case unless stated,",
            f"standard error {error:.2f} points at 5 %.",
            "In brackets stands what the study that the rules were designed by found, with its own code and seeds",
            "(20,000 replications for coverage and designs, 6,000 for tests of two samples).",
            "**Bold**: coverage below 95 % by more than two standard errors.",
            f'From "{NEW[0].name}" to "{NEW[-1].name}" the series belong to families',
            "that no rule was designed or calibrated with.",
        ),
    ]


def _options() -> Namespace:
    parser = options(__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} replications: only shows that it runs")
    parser.add_argument("--replications", type=int, help=f"a case (default {FULL})")
    parser.add_argument("--seed", type=int, default=20260401, help="of all generators (default %(default)s)")
    parser.add_argument("--only", metavar="SECTION", help="run one section")
    parser.add_argument("--record", action="store_true", help="write bench/statistics/results.md")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
