"""How hard property tests look: `ETUDE_HYPOTHESIS` is `quick` (the default), `full` or `random`.

`quick` and `full` try the same examples each time, so that what they say of a change is about the change. `random`
looks for new ones; a failure that it finds is mended and kept as an explicit `@example`.
"""

import os

from hypothesis import settings

EXAMPLES = {"quick": 20, "full": 60, "random": 100}
PROFILE = os.environ.get("ETUDE_HYPOTHESIS", "quick")


def load() -> None:
    """Register the profiles and load the chosen one. No deadline: a busy machine makes no test fail."""
    if PROFILE not in EXAMPLES:
        raise SystemExit(f"ETUDE_HYPOTHESIS={PROFILE}: expected one of {', '.join(EXAMPLES)}")
    for name, count in EXAMPLES.items():
        fixed = name != "random"
        settings.register_profile(
            name, max_examples=count, deadline=None, derandomize=fixed, database=None, print_blob=not fixed
        )
    settings.load_profile(PROFILE)


def examples(share: int) -> int:
    """`max_examples` of a test that tries `share` % of the usual number in each profile."""
    return max(1, share * EXAMPLES[PROFILE] // 100)


def examples_ratio() -> float:
    """How many examples are tried for each one of the quick profile."""
    return EXAMPLES[PROFILE] / EXAMPLES["quick"]
