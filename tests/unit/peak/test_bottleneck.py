"""A generator that did not offer what it was asked is never mistaken for a saturated server."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.bottleneck import (
    BUSY,
    Effort,
    Generator,
    busy_share,
    effort_line,
    find_bottleneck,
    headroom,
    sent_too_little,
)
from support.golden import Golden

POOL = Generator(outstanding=8)


def effort(**changed: object) -> Effort:
    fields = {
        "asked": 100.0,
        "ran_s": 60.0,
        "sent": 4000,
        "completed": 4000,
        "failed": 0,
        "cores": 0.1,
        "outstanding": 7.9,
    }
    return Effort(**{**fields, **changed})  # type: ignore[arg-type]


def test_headroom_is_what_is_left_below_saturation() -> None:
    assert headroom(busy_share(Generator(cores=4), effort(cores=1.6)) or 0) == pytest.approx(1 - 0.4 / BUSY)
    assert headroom(0.9) == 0
    for generator in (Generator(spins=True), Generator(serves=True)):
        assert busy_share(generator, effort(cores=1.0)) is None
    assert busy_share(POOL, effort(cores=None)) is None


def test_it_is_the_server_when_all_that_may_be_outstanding_is_and_the_generator_is_idle() -> None:
    assert find_bottleneck(POOL, effort()) == "server"


def test_one_window_with_all_outstanding_shows_that_the_server_was_the_limit() -> None:
    assert find_bottleneck(POOL, effort(outstanding=5.0, most_outstanding=7.9)) == "server"
    assert find_bottleneck(POOL, effort(outstanding=5.0, most_outstanding=6.0)) == "generator"
    assert find_bottleneck(POOL, effort(outstanding=5.0, most_outstanding=7.9, cores=0.9)) == "generator"


@pytest.mark.parametrize(
    ("changed", "whose"),
    [
        ({"completed": 600, "outstanding": 0.6}, "server"),
        ({"ran_s": 1.0, "sent": 100, "completed": 84, "outstanding": 0.6}, "server"),
        ({"ran_s": 1.0, "sent": 100, "completed": 84, "outstanding": 16.0}, None),
        ({"ran_s": 1.0, "sent": 100, "completed": 84, "outstanding": 0.0}, None),
        ({"completed": 600, "outstanding": None}, "server"),
        ({"completed": 600, "cores": 0.9}, "generator"),
        ({"completed": 5600, "failed": 200}, None),
        (
            {"completed": 3000, "outstanding": 1500.0},
            None,
        ),  # all that is missing is still under way, as usual
        ({"completed": 600, "asked": None}, None),
    ],
)
def test_it_is_the_server_when_what_was_sent_is_not_answered(
    changed: dict[str, object], whose: str | None
) -> None:
    assert find_bottleneck(Generator(), effort(**{"sent": 6000, **changed})) == whose


@pytest.mark.parametrize(
    ("generator", "changed"),
    [
        pytest.param(POOL, {"cores": 0.8}, id="busy"),
        pytest.param(POOL, {"outstanding": 5.0}, id="not all outstanding"),
        pytest.param(Generator(), {}, id="limit unknown"),
        pytest.param(Generator(spins=True), {"cores": 1.0}, id="spins and is late"),
        pytest.param(POOL, {"sent": 6000, "refused": 3}, id="refused by itself"),
    ],
)
def test_in_every_other_case_it_is_the_generator(generator: Generator, changed: dict[str, object]) -> None:
    assert find_bottleneck(generator, effort(**changed)) == "generator"


@pytest.mark.parametrize(
    ("generator", "changed"),
    [
        pytest.param(POOL, {"sent": 5800, "completed": 5800}, id="97 % were sent"),
        pytest.param(POOL, {"sent": 5800, "completed": 5800, "cores": 0.99}, id="busy but in time"),
        pytest.param(
            Generator(spins=True), {"sent": 5990, "completed": 5990, "cores": 1.0}, id="spins and is in time"
        ),
        pytest.param(POOL, {"sent": None}, id="not told"),
        pytest.param(POOL, {"ran_s": 4.0, "sent": 360}, id="a short run and the luck of arrivals"),
    ],
)
def test_who_sent_what_was_asked_is_not_limited(generator: Generator, changed: dict[str, object]) -> None:
    assert find_bottleneck(generator, effort(**changed)) is None


def test_what_is_itself_measured_is_the_server_however_busy() -> None:
    assert find_bottleneck(Generator(serves=True), effort(cores=1.0)) == "server"


def test_of_a_closed_system_only_a_busy_generator_is_told() -> None:
    assert find_bottleneck(POOL, effort(asked=None)) is None
    assert find_bottleneck(POOL, effort(asked=None, cores=0.9)) == "generator"


@given(st.floats(1, 1e6), st.floats(0, 1))
def test_short_is_below_95_percent_and_beyond_three_sigma(due: float, share: float) -> None:
    if sent_too_little(due, due * share):
        assert share < 0.95
        assert due * (1 - share) > 3 * due**0.5 * 0.999


def test_a_trial_says_asked_sent_completed_failed_and_what_the_generator_took(golden: Golden) -> None:
    line = effort_line(POOL, effort(failed=7))
    assert re.findall(r"[\d.]+(?:/s)?", line) == ["100/s", "66.67/s", "66.67/s", "7", "0.10", "1", "7.9", "8"]
    golden(line)


def test_a_busy_generator_that_holds_all_its_clients_kept_up() -> None:
    closed = {"asked": None, "sent": None, "cores": 0.95, "clients": 8.0}
    assert find_bottleneck(POOL, effort(**closed, outstanding=7.8)) is None
    assert find_bottleneck(POOL, effort(**closed, outstanding=5.0)) == "generator"
    assert find_bottleneck(POOL, effort(**closed, outstanding=None)) == "generator"
