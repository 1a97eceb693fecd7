"""Sizes of a machine, and which of them another size is nearest to."""

from __future__ import annotations

import pytest

from etude.iolab.landmarks import landmarks, size_text

CACHES = [
    {"level": 1, "type": "Data", "size_bytes": 32 << 10},
    {"level": 1, "type": "Instruction", "size_bytes": 64 << 10},
    {"level": 2, "type": "Unified", "size_bytes": 1 << 20},
]
TLB = [
    {"kind": "data", "level": 1, "page_bytes": 4096, "entries": 72},
    {"kind": "data", "level": 1, "page_bytes": 2 << 20, "entries": 72},
    {"kind": "instruction", "level": 1, "page_bytes": 4096, "entries": 64},
    {"kind": "unified", "level": 2, "page_bytes": 4096, "entries": 3072},
]


def machine(**memory: object) -> dict[str, object]:
    return {"machine": {"before": {"cpu": {"caches": CACHES}, "memory": memory}, "tlb": TLB}}


def test_caches_of_data_pages_and_what_a_tlb_of_data_reaches_are_landmarks() -> None:
    memory = {"page_bytes": 4096, "huge_page_bytes": 2 << 20, "huge_pages": "madvise"}
    found = [(mark.name, mark.bytes) for mark in landmarks(machine(**memory))]
    assert found == [
        ("page", 4096),
        ("L1", 32 << 10),
        ("L1 TLB reach", 288 << 10),
        ("L2", 1 << 20),
        ("huge page", 2 << 20),
        ("L2 TLB reach", 12 << 20),
    ]


@pytest.mark.parametrize("experiment", [{}, {"machine": None}, {"machine": {"before": {"kernel": "none"}}}])
def test_a_machine_of_which_nothing_is_known_has_none(experiment: dict[str, object]) -> None:
    assert landmarks(experiment) == ()


def test_huge_pages_that_are_switched_off_are_no_landmark() -> None:
    found = landmarks(machine(huge_page_bytes=2 << 20, huge_pages="never"))
    assert "huge page" not in [mark.name for mark in found]


@pytest.mark.parametrize(
    ("size", "text"),
    [(1, "1 B"), (4096, "4 KiB"), (5793, "5.66 KiB"), (1016, "0.992 KiB"), (300 << 10, "300 KiB")],
)
def test_a_size_is_told_in_three_digits(size: float, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    "bad", [None, 7, {}, {"level": 1}, {"level": 1, "type": "Data", "size_bytes": -5, "kind": "data"}]
)
def test_what_is_no_cache_and_no_tlb_is_no_landmark(bad: object) -> None:
    experiment = {"machine": {"before": {"cpu": {"caches": [bad]}}, "tlb": [bad]}}
    assert landmarks(experiment) == ()
