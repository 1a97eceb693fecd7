"""A part on disk: read back as it was written, and refused in one line where it is none."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.cluster import worker
from etude.cluster.distributed.part import ERROR, TASK, new_part, parts_of, read_part
from etude.errors import CommandFailed, EtudeError, InputError, Interrupted, MachineRefuses, UsageError

TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@example({"masks": None}, "blocks")
@given(st.dictionaries(TEXT, JSON), st.sampled_from(["blocks", "tests", "search"]))
def test_a_part_is_read_as_it_was_written(task: dict[str, object], kind: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = [new_part(Path(name), task | {"kind": kind, "at": at}) for at in range(2)]
        assert parts_of(Path(name)) == made
        assert [part.name for part in made] == ["part-0001", "part-0002"]


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_stands_in_its_files_is_a_part_or_refused_in_one_line(text: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        part = new_part(Path(name), {"kind": "blocks"})
        (part.place / ERROR).write_bytes(text)
        told = part.error()
        assert told is None or isinstance(told, EtudeError)
        (part.place / TASK).write_bytes(text)
        try:
            found = read_part(part.place)
        except InputError:
            return
        assert isinstance(found.task["kind"], str)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UsageError("u"), UsageError),
        (InputError("i"), InputError),
        (CommandFailed("c"), CommandFailed),
        (MachineRefuses("m"), MachineRefuses),
        (Interrupted(15, "ended by SIGTERM"), MachineRefuses),
    ],
)
def test_an_error_is_told_by_its_class_and_text(
    tmp_path: Path, error: EtudeError, kind: type[EtudeError]
) -> None:
    part = new_part(tmp_path, {"kind": "blocks"})
    assert part.error() is None
    part.report_error(error)
    told = part.error()
    assert (type(told), str(told)) == (kind, str(error))


def test_a_kind_that_is_not_known_is_told_to_the_controller(tmp_path: Path) -> None:
    part = new_part(tmp_path, {"kind": "dance"})
    assert worker.run_part(part.place) == InputError.exit_code
    told = part.error()
    assert isinstance(told, InputError)
    assert "dance" in str(told)
