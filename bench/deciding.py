"""What a stop rule costs while trials run: a precision that is never reached, beside a fixed number of trials."""

from __future__ import annotations

import tempfile

from rows import ETUDE, Row, interleave, ratios, spread, wall_s

PROGRAM = "/bin/true"
TRIALS, FEW = 6600, 600
UNREACHED = ("--precision", "0.001%", "--time", "1h", "--max-trials")


def etude_s(*options: str) -> float:
    """Wall time of one `etude bench` call, the verdict included."""
    with tempfile.TemporaryDirectory() as directory:
        return wall_s([ETUDE, "bench", *options, "-o", f"{directory}/r", PROGRAM])


def deciding(rounds: int) -> list[Row]:
    """A rule that looks at all trials after each would be quadratic: 29 s instead of 8 s for 6,600 trials."""
    trials = TRIALS if rounds > 2 else FEW
    found = interleave(
        {
            "rule": lambda: etude_s(*UNREACHED, str(trials)),
            "twice": lambda: etude_s(*UNREACHED, str(2 * trials)),
            "fixed": lambda: etude_s("--trials", str(trials)),
            "hyperfine": lambda: wall_s(
                ["hyperfine", "-N", "--style", "none", "--runs", str(trials), PROGRAM]
            ),
        },
        rounds,
    )
    rule, twice = ratios(found["rule"], found["fixed"]), ratios(found["twice"], found["rule"])
    what = f"{trials:,} trials of {PROGRAM} by --precision, with the verdict"
    return [
        Row(
            what, f"--trials {trials}: {spread(found['fixed'])} s", f"{rule} ×", "≤ 1.1 ×", rule.median <= 1.1
        ),
        Row(what, "hyperfine -N --runs", f"{ratios(found['rule'], found['hyperfine'])} ×", "–", None),
        Row("the same: twice as many trials", f"{trials:,}", f"{twice} ×", "≤ 2.1 ×", twice.median <= 2.1),
    ]
