"""Simulate the shipped rules, and write what they cover and how often they cry wolf as Markdown.

    python bench/statistics/run.py [--quick] [-o FILE] [--replications N] [--seed N]

Takes some minutes; with --quick, which only shows that everything runs, some seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.random import Generator

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: calibrate_tables

import levels_and_sittings
import stop_rules
import two_samples
import warnings_raised
from own_series import OWN

from calibrate_tables import paragraph, standard_error

QUICK, FULL = 20, 4000

Section = Callable[[Generator, int], list[str]]

SECTIONS: tuple[tuple[Section, int], ...] = (
    (stop_rules.mean_rule, 5),
    (stop_rules.ratio_rule, 5),
    (two_samples.independent, 1),
    (two_samples.designs, 1),
    (two_samples.equivalence, 1),
    (warnings_raised.warm_up, 1),
    (warnings_raised.trends, 1),
    (warnings_raised.shapes, 1),
    (levels_and_sittings.levels, 1),
    (levels_and_sittings.sittings, 1),
)
"""What is simulated, and how many times as often as was asked for: the rules are vectorised, the others are not."""


def main() -> int:
    """Run all sections, each with a generator of its own, and write the page."""
    options = _options()
    n = options.replications or (QUICK if options.quick else FULL)
    lines = _head(options.seed, n)
    seeds = np.random.SeedSequence(options.seed).spawn(len(SECTIONS))
    for (section, times), seed in zip(SECTIONS, seeds, strict=True):
        begin = time.monotonic()
        lines += section(np.random.default_rng(seed), times * n)
        print(f"{section.__name__}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    text = "\n".join(lines).rstrip() + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0


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
            "**Bold**: coverage below 95 % by more than two standard errors.",
            f'From "{OWN[0].name}" to "{OWN[-1].name}" the series belong to families',
            "that no rule was designed or calibrated with.",
        ),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulate the shipped rules of statistics.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} replications: only shows that it runs")
    parser.add_argument("--replications", type=int, help=f"a case (default {FULL})")
    parser.add_argument("--seed", type=int, default=20260401, help="of all generators (default %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
