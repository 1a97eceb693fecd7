"""Durations, sizes, rates and shares as text; the engine's crate reads the same vectors."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.verdict_options import Thresholds
from etude.cli import parser
from etude.cluster.pool.spec import read_pool
from etude.figures.plot_options import threshold
from etude.iolab.sweeps import sizes
from etude.machine.resources import levels
from etude.script.arguments import parse_timeout
from etude.toml_config import document
from etude.units import formatting, parsing
from etude.units.parsing import QuantityError
from support.places import DATA

VECTORS = [
    json.loads(line) for line in (DATA / "vectors" / "quantities.jsonl").read_text("utf-8").splitlines()
]
KINDS: dict[str, Callable[..., Any]] = {
    "duration": lambda text, **bare: round(parsing.duration(text, **bare) * 1e9),
    "size": parsing.size,
    "share": parsing.share,
    "rate": parsing.rate,
    "bandwidth": parsing.bandwidth,
}


def read(kind: str, text: str, **bare: Any) -> Any:
    if kind == "any":
        found = parsing.quantity(text)
        return found and list(found)
    with contextlib.suppress(QuantityError):
        return KINDS[kind](text, **bare)
    return None


@pytest.mark.parametrize("kind", [*KINDS, "any"])
def test_every_vector_is_read_as_it_says(kind: str) -> None:
    vectors = [vector for vector in VECTORS if vector["kind"] == kind]
    assert len(vectors) > 20
    for vector in vectors:
        bare = {"bare": vector["bare"]} if "bare" in vector else {}
        assert read(kind, vector["text"], **bare) == vector["value"], vector


def test_every_name_of_a_time_is_among_the_vectors() -> None:
    tried = {
        vector["text"].strip().lstrip("+0123456789. ") for vector in VECTORS if vector["kind"] == "duration"
    }
    assert set(parsing.TIME) <= tried


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=12) | st.from_regex(r"[-+0-9.,_eE:]{0,9} ?[a-zA-Zµ%/ ]{0,8}", fullmatch=True))
def test_any_text_is_a_quantity_or_one_line(kind: str, text: str) -> None:
    parsing.quantity(text)
    error = ""
    try:
        assert KINDS[kind](text) >= 0
    except QuantityError as refused:
        error = str(refused)
    assert error == "" or "expected" in error
    assert "\n" not in error


@given(st.integers(1, 2**63 - 1))
def test_a_size_that_is_printed_parses_back(value: int) -> None:
    assert parsing.size(parsing.size_text(value)) == value
    assert sizes(parsing.size_text(value)) == (value,)


@pytest.mark.parametrize(
    ("unit", "kind"), [("s", parsing.duration), ("B", parsing.size), ("1/s", parsing.rate)]
)
@given(value=st.integers(1, 9 * 10**14).map(float))
def test_what_reports_print_parses_back(unit: str, kind: Callable[[str], float], value: float) -> None:
    printed = formatting.quantity(value, unit).replace(",", "")
    assert kind(printed) == pytest.approx(value, rel=6e-4, abs=1)
    assert parsing.quantity(printed) == (pytest.approx(value, rel=6e-4), unit)


@given(st.floats(1e-9, 1e6))
def test_a_duration_that_is_still_to_come_parses_back(seconds: float) -> None:
    assert parsing.duration(formatting.duration(seconds)) == pytest.approx(seconds, rel=0.3, abs=5e-4)


@given(st.floats(1e-4, 10))
def test_a_percentage_that_is_printed_parses_back(fraction: float) -> None:
    assert parsing.share(formatting.percent(fraction)) == pytest.approx(fraction, rel=0.06, abs=6e-6)


@pytest.mark.parametrize("text", ["2m", "2min", "2 min", "120s", "120 s", "120000 ms", "0.5e-3 d"])
def test_a_duration_means_the_same_wherever_it_is_read(text: str, tmp_path: Path) -> None:
    toml = tmp_path / "a.toml"
    toml.write_text(f'time = "{text}"\n')
    found = (
        parser.seconds(text),
        read_pool(f"slurm,time={text}").time_s,
        document(toml).seconds("time"),
        parse_timeout(text),
    )
    assert {round(each or 0.0, 6) for each in found} == {43.2 if "d" in text else 120.0}


@pytest.mark.parametrize(
    ("text", "size"), [("64K", 65536), ("64 KiB", 65536), ("64k", 65536), ("64kB", 64000), ("64KB", 64000)]
)
def test_a_size_means_the_same_wherever_it_is_read(text: str, size: int) -> None:
    found = (
        sizes(text)[0],
        levels.size(text),
        levels.bytes_per_s(text),
        Thresholds.parse([f"leak={text}"]).leak,
        threshold(text).value,
    )
    assert set(found) == {size}


def test_a_bandwidth_has_bytes_or_bits() -> None:
    assert levels.bits_per_s("10mbit") == levels.bits_per_s("1.25 MB/s") == 1e7
    assert levels.bytes_per_s("10MB/s") == levels.bytes_per_s("80mbit") == levels.bytes_per_s("10MB") == 10**7
    assert (levels.tc_time("10ms"), levels.tc_time("1.5 ms"), levels.tc_time("2s")) == (
        "10ms",
        "1500us",
        "2000ms",
    )


@pytest.mark.parametrize("seconds", [7 * 86400.0, 366 * 86400.0, 5400.0, 3600.0, 90.0, 1.5, 0.25])
def test_a_duration_as_text_is_that_duration(seconds: float) -> None:
    assert parsing.duration(parsing.duration_text(seconds)) == seconds
