"""What is known of a machine: noisy findings first, differences by kind, and what was made quiet."""

from __future__ import annotations

from etude.analysis.snapshot_differences import Difference, Differences
from etude.machine.checks import Finding
from etude.machine.quiet.apply_restore import Outcome, Row
from etude.machine.quiet.operation import Change
from etude.present.section import Block, Sentence
from etude.present.sections.machine import (
    differences_blocks,
    differences_document,
    doctor_blocks,
    quiet_blocks,
    rehearsal_blocks,
    status_blocks,
    status_document,
)

FINDINGS = [
    Finding("swap", "off", "good", "nothing is written out", ""),
    Finding("governor", "powersave", "noisy", "times vary", "etude quiet on"),
]
CHANGES = [Change(f"sys/{name}", "0", "1") for name in "abcd"]


def texts(*blocks: Block) -> list[str]:
    return [block.text for block in blocks if isinstance(block, Sentence)]


def test_noisy_findings_stand_first_with_what_to_do() -> None:
    noisy, advice, good = doctor_blocks(FINDINGS, single_lines=False)
    assert isinstance(noisy, Sentence)
    assert noisy.weight == "warning"
    assert "governor" in noisy.text
    assert texts(advice)[0].endswith("etude quiet on.")
    assert texts(good) == ["good     swap: off"]
    assert [line.split(": ")[:2] for line in texts(*doctor_blocks(FINDINGS, single_lines=True))] == [
        ["noisy", "governor"],
        ["good", "swap"],
    ]


def test_what_always_moves_is_counted_unless_all_is_asked_for() -> None:
    found = Differences((), (Difference("load", "1", "2"), Difference("free", "3", "4")), ())
    assert "2 (--all)" in texts(*differences_blocks(("a", "b"), found, everything=False))[-1]
    assert "load" in texts(*differences_blocks(("a", "b"), found, everything=True))[-2]
    assert differences_document(("a", "b"), found)["moved"][0] == {
        "what": "load",
        "first": "1",
        "second": "2",
    }


def test_many_changes_are_counted_and_few_are_named() -> None:
    lines = texts(*quiet_blocks(Outcome({"many": CHANGES, "one": CHANGES[:1]}, ["swap"], {"turbo": "no"})))
    assert lines[:4] == [
        "many: 4 changed",
        "one: /sys/a 0 -> 1",
        "swap: quiet already",
        "turbo: not here: no",
    ]
    assert texts(*quiet_blocks(Outcome())) == ["Nothing was changed."]


def test_operations_are_rows_and_only_what_differs_would_be_changed() -> None:
    rows = [
        Row("a", "meaning", True, (Change("sys/x", "0", "1"), Change("sys/y", "1", "1"))),
        Row("b", "meaning", True, why_not="ENOENT"),
    ]
    assert [line.split()[0] for line in texts(*status_blocks(rows))] == ["operation", "a", "b"]
    assert texts(*rehearsal_blocks(rows)) == ["a: /sys/x: 0 -> 1", "b: not here: ENOENT"]
    first, second = status_document(rows)["operations"]
    assert first["items"] == {"sys/x": ["0", "1"], "sys/y": ["1", "1"]}
    assert second["why_not"] == "ENOENT"
