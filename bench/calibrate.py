"""Measure what Étude's intervals cover, find the factors of its stop rules, and write bench/calibration/results.md,
from which docs/explanation/calibration.md has extracts.

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

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # support: series

import numpy as np

from calibration.least_time import time_section
from calibration.ratio import find_factors, mean_section, validation
from calibration.rest import dependent_trials, smaller_promises
from calibration.steps import HISTORIES, histories_section
from etude.stats.factors import MEAN_FACTORS, RATIO_FACTORS, Factors
from rows import NOMINAL, options, paragraph, standard_error
from support.synthetic_series import OWN

OUTPUT = Path(__file__).resolve().parent / "calibration" / "results.md"
T = TypeVar("T")


def main() -> int:
    given = _options()
    search, mean, ratio, rest, dependent, spans = (
        np.random.default_rng(s) for s in np.random.SeedSequence(given.seed).spawn(6)
    )
    n = given.replications
    factors, found = _timed("factors of RatioPrecision", lambda: find_factors(search, 2 * n))
    means = _timed("MeanPrecision", lambda: mean_section(mean, n))
    ratios = _timed("RatioPrecision on fresh draws", lambda: validation(ratio, n, RATIO_FACTORS))
    others = _timed("the rest", lambda: smaller_promises(rest, n))
    series = _timed("dependent trials", lambda: dependent_trials(dependent, n))
    steps = _timed("steps", lambda: histories_section(given.seed, min(n, HISTORIES)))
    times = _timed("the least time", lambda: time_section(spans, min(n, 4000)))
    lines = [*_head(given.seed, n), *means, *found, *ratios, *others, *series, *steps, *times]
    given.output.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"wrote {given.output}", file=sys.stderr)
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
            "The series and machines are defined in `tests/support/synthetic_series.py`;",
            f'from "{OWN[0].name}" on they are families that no rule was designed with.',
        ),
        *paragraph(
            "The factors by which a stop rule widens its intervals, as minimum:factor;",
            "a test compares them with the code.",
        ),
        "```",
        _factor_line("mean", MEAN_FACTORS),
        _factor_line("ratio", RATIO_FACTORS),
        "```",
        "",
    ]


def _factor_line(name: str, factors: Factors) -> str:
    """The line that tests/unit/stats/test_calibration.py compares with the code."""
    return f"factors {name}: " + " ".join(f"{minimum}:{factor:.2f}" for minimum, factor in factors)


def _timed(name: str, work: Callable[[], T]) -> T:
    print(f"{name} …", end=" ", flush=True, file=sys.stderr)
    begin = time.monotonic()
    result = work()
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    return result


def _options() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--replications", type=int, default=20_000, help="per case (default %(default)s)")
    parser.add_argument("--seed", type=int, default=20260301, help="of all generators (default %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, help="file to write (default bench/calibration/results.md)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
