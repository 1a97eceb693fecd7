"""Where a test stands on the x axis."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import UsageError
from etude.figures.axes import Places, by_names, place
from etude.figures.plot_options import threshold
from etude.figures.sources import Sample
from etude.units.parsing import quantity


def samples(*names: str) -> list[Sample]:
    return [Sample(name, name) for name in names]


def curves(places: Places) -> dict[str, list[float]]:
    return {name: [p.x for p in curve] for name, curve in places.curves().items()}


def named(*names: str) -> Places:
    return by_names(samples(*names), names)


def test_x_is_the_number_that_varies_and_the_rest_names_the_curve() -> None:
    assert curves(named("ext4:4", "ext4:1", "xfs:1", "xfs:16")) == {"ext4": [1, 4], "xfs": [1, 16]}


def test_of_several_numbers_the_last_one_that_varies_is_x() -> None:
    assert curves(named("ext2-1-run3", "ext2-2-run3", "ext4-1-run3")) == {
        "ext2--run3": [1, 2],
        "ext4--run3": [1],
    }


def test_sizes_in_names_are_bytes() -> None:
    places = named("read 4KiB", "read 1M", "read 64K")
    assert curves(places) == {"read": [4096, 65536, 1048576]}
    assert places.unit == "B"


def test_without_a_number_that_varies_the_names_stand_along_the_axis() -> None:
    places = named("ext2", "ext4", "xfs")
    assert curves(places) == {"": [0, 1, 2]}
    assert places.ticks == ((0.0, "ext2"), (1.0, "ext4"), (2.0, "xfs"))


@pytest.mark.parametrize(
    "names",
    [
        ("gzip -1 f", "gzip -5 f"),
        ("-1", "-2"),
        ("make -j4", "make -j8"),
        ("cc -std=c99 -O1", "cc -std=c99 -O2"),
    ],
)
def test_a_digit_in_an_option_is_no_number(names: tuple[str, ...]) -> None:
    assert named(*names).ticks is not None


def test_the_value_of_an_option_is_one() -> None:
    assert curves(named("dd --bs=4K", "dd --bs=8K")) == {"dd --bs": [4096, 8192]}
    assert curves(named("gzip -5 1", "gzip -5 2")) == {"gzip -5": [1, 2]}


def test_a_parameter_is_x_and_the_others_name_the_curves() -> None:
    found = [
        Sample(f"{b}/{s}", "f", {"binary": b, "size": s, "host": "here"})
        for b in ("static", "dynamic")
        for s in ("1K", "2K")
    ]
    places = place(found)
    assert curves(places) == {"static": [1024, 2048], "dynamic": [1024, 2048]}
    assert places.x_label == "size"
    by_binary = place(found, "binary")
    assert by_binary.ticks == ((0.0, "static"), (1.0, "dynamic"))
    assert list(by_binary.curves()) == ["size=1K", "size=2K"]
    with pytest.raises(UsageError, match=r"binary, size, host$"):
        place(found, "threads")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=8))
def test_any_names_have_a_place_each(names: list[str]) -> None:
    assert len(named(*names).placed) == len(names)


def test_names_that_are_long_and_alike_at_both_ends_are_still_two() -> None:
    long = [f"{'a' * 60}{x}{'b' * 60}:{n}" for x in "xy" for n in (1, 2)]
    assert len(curves(named(*long))) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5ms", (0.005, "s")),
        ("64K", (65536.0, "B")),
        ("3", (3.0, None)),
        ("1e400", None),
        ("ms", None),
        ("5 parsecs", None),
        ("", None),
    ],
)
def test_numbers_with_units(text: str, value: object) -> None:
    found = quantity(text)
    assert found == (pytest.approx(value[0]), value[1]) if isinstance(value, tuple) else found == value


def test_a_threshold_is_a_value_and_what_it_is_called() -> None:
    assert (threshold("32KiB=L1 = data").value, threshold("32KiB=L1 = data").label) == (32768.0, "L1 = data")
    with pytest.raises(UsageError, match=r"'=L1'.*number with a unit"):
        threshold("=L1")


@given(st.text(max_size=30))
def test_any_text_is_a_threshold_or_refused(text: str) -> None:
    with suppress(UsageError):
        threshold(text)
