"""Measure what Étude's intervals cover, find the factors of its stop rules, and write docs/calibration.md.

    python bench/calibrate.py [--replications N] [--seed N] [--output FILE]

Exits with 1 where a factor in src/etude/stats/stopping.py is smaller than the one found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

import calibrate_dependent
import calibrate_mean
import calibrate_ratio
import calibrate_rest
import calibrate_steps
import calibrate_time
from calibrate_tables import NOMINAL, factor_line, paragraph, standard_error
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS
from etude.stats.series import OWN

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "calibration.md"
T = TypeVar("T")


def main() -> int:
    """Run all parts and write the page."""
    options = _options()
    search, mean, ratio, rest, dependent, spans = (
        np.random.default_rng(s) for s in np.random.SeedSequence(options.seed).spawn(6)
    )
    n = options.replications
    factors, found = _timed("factors of RatioPrecision", lambda: calibrate_ratio.find_factors(search, 2 * n))
    means = _timed("MeanPrecision", lambda: calibrate_mean.section(mean, n))
    ratios = _timed(
        "RatioPrecision on fresh draws", lambda: calibrate_ratio.validation(ratio, n, RATIO_FACTORS)
    )
    others = _timed("the rest", lambda: calibrate_rest.section(rest, n))
    series = _timed("dependent trials", lambda: calibrate_dependent.section(dependent, n))
    steps = _timed("steps", lambda: calibrate_steps.section(options.seed, min(n, calibrate_steps.HISTORIES)))
    times = _timed("the least time", lambda: calibrate_time.section(spans, min(n, 4000)))
    lines = [*_head(options.seed, n), *means, *found, *ratios, *others, *series, *steps, *times]
    options.output.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"wrote {options.output}", file=sys.stderr)
    if any(own < needed for (_, own), (_, needed) in zip(RATIO_FACTORS, factors, strict=True)):
        print(f"the code has {RATIO_FACTORS}, this run found {factors}", file=sys.stderr)
        return 1
    return 0


def _head(seed: int, replications: int) -> list[str]:
    error, most = (100 * standard_error(value, replications) for value in (NOMINAL, 0.5))
    return [
        "# What the intervals cover",
        "",
        *paragraph(
            f"Written by `bench/calibrate.py --seed {seed} --replications {replications}`",
            f"(numpy {np.__version__}); not to be edited.",
            "Every figure is a simulation on synthetic series:",
            f"{replications} replications a case unless stated,",
            f"standard error {error:.2f} points at 95 %, at most {most:.2f}. No real benchmark was run.",
            "**Bold**: below 95 % by more than two standard errors.",
            "The series and machines are defined in `src/etude/stats/series.py`;",
            f'from "{OWN[0].name}" on they are families that no rule was designed with.',
        ),
        *paragraph(
            "The factors by which a stop rule widens its intervals, as minimum:factor;",
            "a test compares them with the code.",
        ),
        "```",
        factor_line("mean", MEAN_FACTORS),
        factor_line("ratio", RATIO_FACTORS),
        "```",
        "",
    ]


def _timed(name: str, work: Callable[[], T]) -> T:
    print(f"{name} …", end=" ", flush=True, file=sys.stderr)
    begin = time.monotonic()
    result = work()
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    return result


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what Étude's intervals cover.")
    parser.add_argument("--replications", type=int, default=20_000, help="per case (default %(default)s)")
    parser.add_argument("--seed", type=int, default=20260301, help="of all generators (default %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="page to write (default docs/calibration.md)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
