"""Simulate claims of known truth, and write bench/claims/results.md: wrong families, and trials against a fixed plan.

    python bench/claims.py [--families N] [--runs N] [--output FILE]

Exits with 1 where more than 5 % of families are wrong, or more than 0.6 of the trials of a fixed plan are needed.
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import Pool
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))  # support: simulated claims

from support.simulated_claims import Errors, errors, savings

OUTPUT = Path(__file__).resolve().parent / "claims" / "results.md"
CVS = (0.01, 0.02, 0.05, 0.10)
LAST = 60
MOST_WRONG, MOST_TRIALS = 0.05, 0.6


def main() -> int:
    given = _options()
    lines = [
        "# Claims, simulated",
        "",
        f"`python bench/claims.py --families {given.families} --runs {given.runs}`. Times are log-normal; outliers:",
        "2 % of the trials take 1.5 times as long. Margin 1 %, confidence 95 %.",
        "",
        f"Families of 10 claims `ratio <= 1`, at most {LAST} trials, five of them with a truth within the margin,",
        "where any decision is wrong:",
        "",
        "| CV | outliers | families | wrong | right decisions outside the margin |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    kinds = [(outliers, place) for outliers in (False, True) for place in range(len(CVS))]
    plans = [(*kind, level) for kind in kinds for level in (0.05, 0.005)]
    with Pool(given.jobs) as pool:
        wrong = pool.starmap(_errors, [(*kind, given.families) for kind in kinds], 1)
        saved = pool.starmap(_savings, [(*plan, given.runs) for plan in plans], 1)
    for (outliers, place), found in zip(kinds, wrong, strict=True):
        share = f"{found.share:.1%} | {found.decided / found.of:.0%}"
        lines.append(f"| {CVS[place]:.0%} | {'yes' if outliers else 'no'} | {found.families:,} | {share} |")
    lines += [
        "",
        "Trials of each test until a claim is decided whose truth lies two margins beyond the margin. The fixed plan,",
        "and the sequential one at its last look, decide a truth one margin beyond with 90 %, at the same level:",
        "",
        "| CV | outliers | level | fixed plan | sequential, at most | mean, of the fixed plan |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for (outliers, place, level), (fixed, last, share) in zip(plans, saved, strict=True):
        told = "yes" if outliers else "no"
        lines.append(f"| {CVS[place]:.0%} | {told} | {level:g} | {fixed:,} | {last:,} | {share:.2f} |")
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {given.output}", file=sys.stderr)
    return int(max(e.share for e in wrong) > MOST_WRONG or max(share for _, _, share in saved) > MOST_TRIALS)


def _errors(outliers: bool, place: int, families: int) -> Errors:
    return errors(families, CVS[place], LAST, outliers, place)


def _savings(outliers: bool, place: int, level: float, runs: int) -> tuple[int, int, float]:
    return savings(CVS[place], level, runs, outliers, place)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--families", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
