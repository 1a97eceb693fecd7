from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from etude.errors import InputError
from etude.iotrace.reader import read_trace
from support.traces import CALLS, COPY, imported


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return imported(COPY, tmp_path / "copy.trace")


def test_calls_are_as_they_were_recorded(path: Path) -> None:
    trace = read_trace(path)
    names = [trace.names[code] for code in trace.call]
    row = names.index("pread64") + 1
    assert names[row : row + 2] == ["pread64", "lseek"]
    assert (int(trace.result[row]), int(trace.duration_ns[row])) == (100, 100_000)
    assert [int(column[row]) for column in trace.arguments] == [3, 0, 100, 65636, 0, 0]
    assert trace.text(int(trace.texts[0][names.index("chdir")])) == b"/data"
    assert trace.text(0) == b""
    assert trace.header["argv"] == ["copy", "in", "out"]
    assert [each["what"] for each in trace.meta].count("process") == 2


def test_columns_cannot_be_written_to(path: Path) -> None:
    with pytest.raises(ValueError, match="read-only"):
        read_trace(path).start_ns[0] = 1


def test_a_trace_cut_short_is_refused_in_one_line_and_read_where_asked_for(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"copy\.trace: .* byte \d+ .*--partial .*\b29\b") as caught:
        read_trace(path)
    assert "\n" not in str(caught.value)
    trace = read_trace(path, partial=True)
    assert (trace.events, trace.footer) == (CALLS, None)
    assert re.search(r"\bbyte \d+", trace.partial)


def test_damage_is_refused_in_one_line_and_what_stands_before_it_read_where_asked_for(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    at = whole.index(b"foot")
    whole[at + 14] ^= 1
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"damaged at byte \d+: .*checksum") as caught:
        read_trace(path)
    assert str(caught.value).count(str(path)) == 1
    assert read_trace(path, partial=True).events == CALLS


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_the_size_of_a_trace_is_that_of_what_was_read_of_it(path: Path, damage: str) -> None:
    whole = path.read_bytes()
    assert read_trace(path).size_bytes == len(whole)
    at = whole.index(b"foot")
    if damage == "cut":
        path.write_bytes(whole[: at + 14])
    else:
        path.write_bytes(whole[: at + 14] + bytes([whole[at + 14] ^ 1]) + whole[at + 15 :] + bytes(5000))
    assert read_trace(path, partial=True).size_bytes == at


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda whole: whole[:8] + b"\x07" + whole[9:], "version 7"),
        (lambda whole: b"something else" + whole, "no trace"),
        (lambda whole: b"", "is empty"),
    ],
)
def test_what_is_no_trace_of_this_version_is_refused_in_one_line(path: Path, change, said: str) -> None:  # type: ignore[no-untyped-def]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=said) as caught:
        read_trace(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).count(str(path)) == 1


def test_a_missing_file_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nosuch") as caught:
        read_trace(tmp_path / "nosuch")
    assert str(caught.value).count("nosuch") == 1


def test_a_name_that_looks_like_an_option_is_a_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    os.rename(path, "-h")
    assert read_trace(Path("-h")).events == CALLS
