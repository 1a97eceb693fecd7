"""A job's files as they go to its node and come back."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etude.cluster.pool.job import Job
from etude.cluster.pool.job_files import RECORD, Checks, script
from etude.cluster.pool.staging import pack_files, unpack
from etude.errors import EtudeError, MachineRefuses

NAMES = st.text(
    st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="/.:"), min_size=1, max_size=20
)


def job(place: Path) -> Job:
    return Job("a job", ("true",), place, place)


@example({"given": b""})
@example({"code": b"0"})
@given(st.dictionaries(NAMES, st.binary(max_size=2000), max_size=5))
def test_what_went_comes_back_byte_for_byte(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        for name, content in files.items():
            (Path(one) / name).write_bytes(content)
        unpack(pack_files(job(Path(one))), job(Path(two)))
        assert {path.name: path.read_bytes() for path in Path(two).iterdir()} == files


def archive(*names: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as files:
        for name in names:
            files.addfile(tarfile.TarInfo(name), io.BytesIO())
    return data.getvalue()


def why_not(data: bytes) -> str:
    """Of what came back; empty if it could be taken. Any other error than ours comes through."""
    with tempfile.TemporaryDirectory() as place:
        try:
            unpack(data, job(Path(place)))
        except EtudeError as error:
            return str(error)
    return ""


@given(st.binary(max_size=3000), st.booleans())
def test_what_is_no_archive_is_at_most_one_line(data: bytes, ends: bool) -> None:
    assert "\n" not in why_not(data + bytes(1024) * ends)


@given(st.integers(0, 4511))
def test_an_archive_that_was_cut_short_is_told(length: int) -> None:
    """Even where what is left of it ends as an archive does."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as files:
        member = tarfile.TarInfo("zeros")
        member.size = 4000
        files.addfile(member, io.BytesIO(bytes(4000)))
    assert why_not(data.getvalue()) == ""
    assert why_not(data.getvalue()[:length]).startswith("a job: ")


def test_nothing_that_comes_back_is_written_beside_the_place(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with pytest.raises(MachineRefuses, match=r"^a job: "):
        unpack(archive("../beside"), job(tmp_path / "place"))
    assert not (tmp_path / "beside").exists()


def test_what_the_pool_below_has_written_here_stays(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text("ours")
    unpack(archive(f"./{RECORD}", "./results"), job(tmp_path))
    assert (tmp_path / RECORD).read_text() == "ours"
    assert (tmp_path / "results").exists()


def test_a_place_that_is_not_shared_is_made_by_the_job(tmp_path: Path) -> None:
    made = f"mkdir -p {tmp_path}"
    assert made in script(job(tmp_path), "token", Checks(None, is_shared=False))
    assert made not in script(job(tmp_path), "token", Checks(None))
