"""In which order trials are made: in turn, randomised blocks, or duets."""

from __future__ import annotations

import random
from collections.abc import Sequence

from etude.errors import MachineRefuses
from etude.experiment.test import Test

IN_TURN, BLOCKS, DUET = "in-turn", "blocks", "duet"


def groups(schedule: str, tests: Sequence[Test]) -> list[tuple[Test, ...]]:
    """Tests that share blocks: each alone when in turn, else all together."""
    return [(test,) for test in tests] if schedule == IN_TURN else [tuple(tests)]


def block_order(tests: Sequence[Test], block: int, seed: int) -> list[Test]:
    """The members of a block in their random order, which depends on the seed and the block alone.

    Random order within each block holds its error rate under drift, steps and periods, where a strict ABAB
    fails at period two (simulation, docs/calibration.md).
    """
    order = list(tests)
    random.Random(f"{seed}:{block}").shuffle(order)
    return order


def disjoint_cpus(cpus: Sequence[int], parties: int, block: int, seed: int) -> list[tuple[int, ...]]:
    """CPUs for each party of a duet: equal shares, dealt anew for each block so that no party owns the better ones.

    Raises:
        MachineRefuses: there are fewer CPUs than parties.
    """
    share = len(cpus) // parties
    if share == 0:
        raise MachineRefuses(
            f"{len(cpus)} CPU{'' if len(cpus) == 1 else 's'} for a duet of {parties}; each needs one of its own"
        )
    shares = [tuple(cpus[i * share : (i + 1) * share]) for i in range(parties)]
    random.Random(f"{seed}:{block}:cpus").shuffle(shares)
    return shares
