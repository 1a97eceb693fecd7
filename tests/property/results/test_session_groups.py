"""Blocks across restarts: whole where the experiment asked for the restart, and torn where something else ended it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from etude.experiment.progress import paired_samples, trials_of
from etude.results.results import session_groups
from support.builders import measurement

ENDS = st.lists(st.sampled_from(["restarting", "restarting into b", "SIGTERM", None, "complete"]), max_size=8)


def sittings(*ends: str | None) -> list[dict[str, object]]:
    return [{"sitting": number, "how_ended": how} for number, how in enumerate(ends, 1)]


@given(ENDS)
def test_a_stretch_goes_on_behind_a_restart_and_ends_with_anything_else(ends: list[str | None]) -> None:
    found = session_groups(sittings(*ends))
    assert list(found) == list(range(1, len(ends) + 1))
    for before, how in enumerate(ends[:-1], 1):
        asked = how is not None and how.startswith("restarting")
        assert (found[before + 1] == found[before]) == asked
        assert asked or found[before + 1] == before + 1


def test_a_block_that_a_restart_of_its_own_parts_is_a_pair_and_an_interrupted_one_is_none() -> None:
    a = trials_of(measurement("a", n, n, block=n, sitting=n) for n in (1, 2, 3))
    b = trials_of(measurement("b", n, 10 * n, block=n, sitting=n + 1) for n in (1, 2, 3))
    found = session_groups(sittings("restarting", "SIGTERM", "restarting into b", None))
    assert paired_samples([a, b], "elapsed", found) == ([1, 3], [10, 30])
    assert paired_samples([a, b], "elapsed") == ([], [])
