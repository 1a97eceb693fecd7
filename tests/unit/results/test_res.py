"""Auto-pilot's format: what is written is read back, and whatever is read is blocks, rows or reasons."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.results.model import METRICS, Measurement, check_measurement, from_line, to_line
from etude.results.res import (
    Block,
    fields,
    format_block,
    format_measurement,
    format_snapshot,
    metric_of,
    parse_blocks,
    row_of_block,
)
from support.builders import measurement
from support.golden import Golden

MANUAL = """\
Linux box 2.4.24

[partitions]
hda1 = 100 = 200
[measurement]
thread = 1
epoch = 3
command = sh -c 'x = [y]'
user = 0.450000
sys = 1.250000
elapsed = 12.500000
status = 0
[others]
"""

WHOLE = {
    "thread": "2",
    "epoch": "3",
    "command": "true",
    "user": "1.5",
    "sys": "0.5",
    "elapsed": "4.0",
    "status": "0",
}


def block(**changes: str | None) -> Block:
    """A measurement block; None leaves a field out."""
    members = {name: value for name, value in (WHOLE | changes).items() if value is not None}
    return Block("measurement", tuple(f"{name} = {value}" for name, value in members.items()))


def row(**changes: str | None) -> dict[str, Any]:
    found = row_of_block(block(**changes))
    assert isinstance(found, dict), found
    return found


def reason(**changes: str | None) -> str:
    found = row_of_block(block(**changes))
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_blocks_begin_with_a_word_in_brackets_on_its_own_line(ends: str) -> None:
    blocks = parse_blocks(MANUAL.replace("\n", ends))
    assert [(each.name, each.line) for each in blocks] == [
        ("", 1),
        ("partitions", 3),
        ("measurement", 5),
        ("others", 13),
    ]
    assert blocks[0].lines == ("Linux box 2.4.24", "")
    assert fields(blocks[1]) == {"hda1": "100 = 200"}
    assert shlex.split(fields(blocks[2])["command"]) == ["sh", "-c", "x = [y]"]
    assert blocks[3].lines == ()
    assert not any(each.cut for each in blocks)


@pytest.mark.parametrize("line", [" [x]", "[x] ", "[x]y", "[]", "[a b]", "[x", "x]", "[é]", "[[x]]"])
def test_anything_else_is_no_header(line: str) -> None:
    assert parse_blocks(f"[a]\n{line}\n") == [Block("a", (line,))]


@pytest.mark.parametrize("name", ["x", "7", "io-hda.1", "a_b", "a:b+c"])
def test_a_header_is_a_word_of_these_characters(name: str) -> None:
    assert parse_blocks(f"[{name}]\n") == [Block(name, ())]


def test_text_without_blocks_is_preamble_and_no_text_is_nothing() -> None:
    assert parse_blocks("a\nb\n") == [Block("", ("a", "b"))]
    assert parse_blocks("") == []


def test_a_row_has_the_members_of_a_measurement() -> None:
    assert row() == {
        "worker": 1,
        "trial": 3,
        "command": ["true"],
        "command_text": None,
        "accepted": None,
        "start": None,
        "start_ns": None,
        "inner": 1,
        "exit_status": 0,
        "signal": None,
        "timed_out": False,
        "cancelled": False,
        "error": None,
        "kept": True,
        "why": None,
        "metrics": {"user": [1.5, "s"], "system": [0.5, "s"], "elapsed": [4.0, "s"]},
    }


def test_further_fields_with_a_number_are_metrics_in_their_unit() -> None:
    found = row(
        peak_memory="4096", minor_faults="12", free="1.5 GB", requests="7", note="12 of 13", pid="0x1f"
    )
    assert found["metrics"] == {
        "user": [1.5, "s"],
        "system": [0.5, "s"],
        "elapsed": [4.0, "s"],
        "peak_memory": [4096, "B"],
        "minor_faults": [12, "1"],
        "free": [1.5, "GB"],
        "requests": [7, "1"],
    }


@pytest.mark.parametrize(
    ("changes", "status", "signal"),
    [
        ({}, 0, None),
        ({"status": "3"}, 3, None),
        ({"status": "137", "signal": "9"}, None, 9),
        ({"status": "137"}, 137, None),
        ({"status": "null"}, None, None),
    ],
)
def test_a_status_beside_its_signal_is_a_signal(
    changes: dict[str, str], status: int | None, signal: int | None
) -> None:
    found = row(**changes)
    assert (found["exit_status"], found["signal"]) == (status, signal)


def test_where_it_stands_may_be_left_open() -> None:
    found = row(thread=None, epoch=None, command=None)
    assert (found["worker"], found["trial"], found["command"]) == (0, None, [])


def test_a_command_that_is_no_line_of_a_shell_is_one_word() -> None:
    assert row(command="it's broken")["command"] == ["it's broken"]


def test_an_accepted_status_is_no_metric_and_read_back() -> None:
    found = row(status="0", accepted="1")
    assert (found["exit_status"], found["accepted"]) == (0, 1)
    assert "accepted" not in found["metrics"]
    assert "accepted = 1\n" in format_measurement(measurement(accepted=1))


@pytest.mark.parametrize("text", ['sh -c "make -j2"', "it's broken", "a  b", "tar xf x.tar > log; make"])
def test_a_command_keeps_its_text(text: str) -> None:
    found = row(command=text)
    assert found["command_text"] == text
    read = from_line(dict.fromkeys(Measurement._fields) | found | {"kept": True})
    assert read.command_line == text
    assert f"command = {text}\n" in format_measurement(read)
    assert row(command="sh -c 'make -j2'")["command_text"] is None, "as it would be written"


def test_when_it_began_is_kept() -> None:
    found = row(start="2026-01-01T00:00:00.000000001Z", start_ns="123")
    assert (found["start"], found["start_ns"]) == ("2026-01-01T00:00:00.000000001Z", 123)


@pytest.mark.parametrize(
    ("field", "text", "found"),
    [
        ("status", None, "cut short"),
        ("status", "x", "'x'"),
        ("epoch", "-1", "'-1'"),
        ("epoch", "9" * 5000, "999"),
        ("thread", "0", "0"),
        ("thread", "1.5", "'1.5'"),
        ("elapsed", "soon", "'soon'"),
        ("elapsed", "nan", "'nan'"),
        ("elapsed", "1e999", "'1e999'"),
        ("sys", "-", "'-'"),
    ],
)
def test_a_block_that_cannot_be_used_says_why(field: str, text: str | None, found: str) -> None:
    said = reason(**{field: text})
    assert field in said
    assert found in said


def test_a_block_cut_at_any_byte_has_no_wrong_value() -> None:
    text = format_block(block(elapsed="12.345678", peak_memory="4096"))
    whole = row(elapsed="12.345678", peak_memory="4096")["metrics"]
    for length in range(len(text)):
        for found in map(row_of_block, parse_blocks(text[:length])):
            metrics = {} if isinstance(found, str) else found["metrics"]
            assert metrics == {name: value for name, value in whole.items() if name in metrics}


def test_of_two_fields_with_one_name_the_first_counts() -> None:
    twice = Block("measurement", (*block().lines, "elapsed = 99"))
    found = row_of_block(twice)
    assert isinstance(found, dict)
    assert found["metrics"]["elapsed"] == [4.0, "s"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.5", [12.5, "1"]),
        ("12.5 B", [12.5, "B"]),
        ("  -3   kB/s ", [-3, "kB/s"]),
        ("1e-3 s", [0.001, "s"]),
        (".5", [0.5, "1"]),
        ("5.", [5.0, "1"]),
        ("7 $'a b'", [7, "a b"]),
        ("null B", [None, "B", "no reason given"]),
        ("null B no such event", [None, "B", "no such event"]),
        ("", None),
        ("B", None),
        ("12 of 13", None),
        ("12,5", None),
        ("0x10", None),
        ("inf", None),
        ("nan s", None),
        ("1e999", None),
        ("1_000", None),
        ("12B", None),
    ],
)
def test_a_metric_is_a_number_and_perhaps_a_unit(text: str, expected: object) -> None:
    assert metric_of(text) == expected
    assert type((metric_of(text) or [None])[0]) is type((expected or [None])[0])  # type: ignore[index]


names = st.text(min_size=1, max_size=12) | st.sampled_from(
    [
        *METRICS,
        "sys",
        "status",
        "thread",
        "start",
        "set_aside",
        "a = b",
        "[x]",
        " x ",
        "$'x'",
        "x\n[measurement]",
    ]
)
units = st.text(max_size=6) | st.sampled_from(["s", "B", "1", "", "kB/s", "a b", "$'", "null"])
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63) + 1, 2**63 - 1)
metrics = st.tuples(numbers, units).map(list) | st.tuples(st.none(), units, st.text(max_size=10)).map(list)
endings = st.sampled_from([(0, None), (3, None), (137, None), (None, 9), (None, None)])


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    """What a block can carry; the rest is as the builder makes it."""
    status, signal = draw(endings)
    kept = draw(st.booleans())
    return measurement(
        trial=draw(st.integers(0, 10**9 - 1)),
        block=0,
        worker=draw(st.integers(0, 10**6)),
        command=draw(st.lists(st.text(max_size=10), max_size=3)),
        start=draw(st.none() | st.text(max_size=10)),
        start_ns=draw(st.none() | st.integers(0, 10**18 - 1)),
        inner=draw(st.integers(1, 10**6)),
        exit_status=status,
        signal=signal,
        timed_out=draw(st.booleans()),
        cancelled=draw(st.booleans()),
        error=draw(st.none() | st.text(max_size=10)),
        kept=kept,
        why=None if kept else draw(st.text(min_size=1, max_size=10)),
        metrics=draw(st.dictionaries(names, metrics, max_size=5)),
    )


@given(measurements())
@example(measurement(command=["a\n[measurement]\nstatus = 1"], metrics={"elapsed": [0.1 + 0.2, "s"]}))
def test_what_is_written_of_a_measurement_is_read_back(m: Measurement) -> None:
    (only,) = parse_blocks(format_measurement(m))
    assert only.name == "measurement"
    found = row_of_block(only)
    assert isinstance(found, dict), found
    assert {name: getattr(m, name) for name in found} == found


def test_a_measurement_is_written_in_the_order_of_the_paper(golden: Golden) -> None:
    values = {"elapsed": [12.5, "s"], "user": [0.45, "s"], "system": [1.25, "s"], "peak_memory": [4096, "B"]}
    values |= {"rate": [7.5, "MB/s"], "faults": [3, "1"], "cycles": [None, "1", "no such event"]}
    m = measurement(trial=3, worker=1, command=["sh", "-c", "x = [y]"], metrics=values, start_ns=7)
    text = format_measurement(m)
    assert [line.split(" = ")[0] for line in text.splitlines()] == [
        *("[measurement]", "thread", "epoch", "command", "user", "sys", "elapsed", "status"),
        *("peak_memory", "rate", "faults", "cycles", "start", "start_ns"),
    ]
    golden(text)


texts = st.text() | st.lists(
    st.sampled_from(
        [
            "[measurement]",
            "[x]",
            "\n",
            "\r\n",
            " = ",
            "status",
            "0",
            "thread",
            "1",
            "elapsed",
            "12.5",
            "null",
            "$'",
            " ",
            "\x85",
        ]
    ),
    max_size=30,
).map("".join)


@given(texts)
def test_any_text_is_blocks_that_are_written_as_they_were_read(text: str) -> None:
    blocks = parse_blocks(text)
    for each in blocks:
        found = row_of_block(each)
        assert found
        for value in fields(each).values():
            metric_of(value)
        if isinstance(found, dict):
            members = found | {"trial": found["trial"] or 0}
            check_measurement(to_line(measurement()) | members)
    assert parse_blocks("".join(map(format_block, blocks))) == blocks


@given(st.binary())
def test_any_bytes_are_blocks(data: bytes) -> None:
    for each in parse_blocks(data.decode("utf-8", "replace")):
        row_of_block(each)


@given(st.text(min_size=1), st.lists(st.text()))
@example("a b", ["[x]", "a\n[y]"])
def test_a_block_of_any_text_stays_one_block(name: str, lines: list[str]) -> None:
    parsed = parse_blocks(format_block(Block(name, tuple(lines))))
    assert len(parsed) == 1
    assert parsed[0].name


def test_a_row_makes_a_measurement_once_its_place_is_known() -> None:
    place = {"test": "t", "block": 3, "order": 0, "host": "h", "sitting": 1, "boot_id": "b"}
    line = to_line(from_line(row() | place))
    check_measurement(line)
    assert line["trial"] == 3


def test_a_snapshot_is_a_block_for_each_part(golden: Golden) -> None:
    machine = {
        "cpu": {"model": "Some CPU", "caches": [{"level": 1, "type": "Data"}, {"level": 2, "type": None}]},
        "memory": {"swap": False, "total_bytes": 5, "allowed": [0, 1]},
        "kernel": {"mitigations": {"l1tf": "not affected"}, "odd": "a\n[measurement]"},
        "empty": None,
    }
    text = format_snapshot(machine)
    assert [block.name for block in parse_blocks(text)] == ["cpu", "memory", "kernel", "empty"]
    golden(text)


def test_the_snapshot_of_this_machine_is_blocks() -> None:
    from etude.machine import snapshot

    machine = snapshot.take()
    assert [each.name for each in parse_blocks(format_snapshot(machine))] == list(machine)
