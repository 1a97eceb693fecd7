"""Writing results: whole trials only, one writer, names that are safe."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError, MachineRefuses, UsageError
from etude.experiment.session import new_directory
from etude.peak.record import Record, open_record
from etude.results import writer as writer_module
from etude.results.blocks import Block, TrialBlock, read_blocks
from etude.results.reader import read_measurements
from etude.results.writer import ResultsWriter, directory_name, replace_json, sole_writer
from support.builders import line, measurement


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[ResultsWriter]:
    made = ResultsWriter(tmp_path, {"a": "a"})
    yield made
    made.close()


def test_a_trial_is_on_disk_when_append_returns(writer: ResultsWriter) -> None:
    for trial in range(3):
        rows = [measurement(trial=trial, worker=worker) for worker in range(2)]
        writer.append("a", rows)
        assert writer.path("a").read_bytes().endswith(b"".join(line(row) for row in rows).replace(b" ", b""))


def test_one_trial_is_one_write(writer: ResultsWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    real = os.write
    monkeypatch.setattr("os.write", lambda file, data: written.append(bytes(data)) or real(file, data))
    writer.append("a", [measurement(worker=worker) for worker in range(4)])
    assert [data.count(b"\n") for data in written] == [4]


@pytest.mark.parametrize("how", ["removed", "moved", "replaced"])
def test_a_results_directory_that_disappears_is_noticed_at_the_next_trial(
    how: str, writer: ResultsWriter, tmp_path: Path
) -> None:
    writer.append("a", [measurement()])
    place = writer.path("a").parent
    if how == "removed":
        shutil.rmtree(place)
    else:
        place.rename(tmp_path / "elsewhere")
    if how == "replaced":
        shutil.copytree(tmp_path / "elsewhere", place)
    with pytest.raises(MachineRefuses, match=re.escape(str(place))):
        writer.append("a", [measurement()])


@pytest.mark.parametrize(
    "make",
    [
        lambda path: new_directory(path, "a"),
        lambda path: open_record(path, Record, Record.begin_session).__enter__(),
    ],
    ids=["run", "search"],
)
def test_a_directory_that_is_not_utf_8_is_refused(make: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        make(tmp_path / "o\udcff")
    assert str(error.value).isprintable()
    assert os.listdir(tmp_path) == []


def test_results_go_behind_what_is_there_already(tmp_path: Path) -> None:
    for trial in range(2):
        again = ResultsWriter(tmp_path, {"a": "a"})
        again.append("a", [measurement(trial=trial)])
        again.close()
    rows, _ = read_measurements(tmp_path / "a" / "results.jsonl")
    assert [row.trial for row in rows] == [0, 1]


SMALL = 2000


@contextmanager
def small_files() -> Iterator[None]:
    """A device on which a file has space for `SMALL` bytes; pytest's own output may be a file, too: only within."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_device_the_file_ends_with_its_last_whole_trial(
    writer: ResultsWriter,
) -> None:
    size = len(line(measurement()))
    assert SMALL % size, "the last write must be cut"

    def until_full() -> None:
        for trial in range(100):
            writer.append("a", [measurement(trial=trial), measurement(trial=trial, worker=1)])

    with pytest.raises(MachineRefuses, match=r"results\.jsonl: cannot write results: "), small_files():
        until_full()
    rows, whole = read_measurements(writer.path("a"))
    assert whole
    assert len(rows) >= 2
    assert len(rows) % 2 == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_write_that_is_refused_leaves_no_part_of_a_trial(
    writer: ResultsWriter, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    writer.append("a", [measurement(trial=0)])
    before = writer.path("a").read_bytes()
    real = os.write

    def half_then_refuse(file: int, data: bytes) -> int:
        real(file, data[: len(data) // 2])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.write", half_then_refuse)
    with pytest.raises(MachineRefuses) as error:
        writer.append("a", [measurement(trial=1)])
    assert os.strerror(number) in str(error.value)
    assert writer.path("a").read_bytes() == before


def test_no_space_says_to_free_some_and_resume(tmp_path: Path) -> None:
    refused = writer_module.write_error(tmp_path, OSError(errno.ENOSPC, "full"))
    assert str(refused).startswith(f"{tmp_path}: ")
    assert os.strerror(errno.ENOSPC) in str(refused)
    assert "--resume" in str(refused)


def test_a_sync_that_fails_is_one_line(writer: ResultsWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    writer.append("a", [measurement()])
    with monkeypatch.context() as patch:
        patch.setattr("os.fdatasync", refuse)
        with pytest.raises(MachineRefuses, match=rf"results\.jsonl: .*{os.strerror(errno.EIO)}"):
            writer.sync()


def test_a_file_where_a_directory_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(MachineRefuses, match="cannot write results"):
        ResultsWriter(tmp_path, {"a": "a"})


def test_a_document_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "experiment.json"
    replace_json(path, {"name": "first"})

    def refuse(file: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(MachineRefuses, match=rf"experiment\.json: .*{os.strerror(errno.ENOSPC)}"):
        replace_json(path, {"name": "second"})
    assert json.loads(path.read_text()) == {"name": "first"}
    assert os.listdir(tmp_path) == ["experiment.json"]


def test_a_second_writer_is_kept_out_until_the_first_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "LOCK_WAIT_S", 0.0)
    with sole_writer(tmp_path):
        with pytest.raises(MachineRefuses, match="another Étude"), sole_writer(tmp_path):
            pass
        with pytest.raises(MachineRefuses), sole_writer(tmp_path):
            pass
    with sole_writer(tmp_path):
        pass


def test_a_killed_writers_engine_holds_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine inherits the descriptor: here a child that outlives the `with`."""
    monkeypatch.setattr(writer_module, "LOCK_WAIT_S", 0.0)
    release, held = os.pipe()
    os.set_inheritable(release, True)
    with sole_writer(tmp_path):
        actions = [(os.POSIX_SPAWN_DUP2, release, 0)]
        child = os.posix_spawn("/bin/sh", ["sh", "-c", "read line"], os.environ, file_actions=actions)
        os.close(release)
    with pytest.raises(MachineRefuses), sole_writer(tmp_path):
        pass
    os.close(held)
    os.waitpid(child, 0)
    with sole_writer(tmp_path):
        pass


def test_it_waits_for_the_first_writer_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sole_writer(tmp_path)
    first.__enter__()
    waits: list[float] = []

    def end_the_first(seconds: float) -> None:
        waits.append(seconds)
        first.__exit__(None, None, None)

    monkeypatch.setattr("time.sleep", end_the_first)
    with sole_writer(tmp_path):
        assert len(waits) == 1


def test_a_test_can_be_added_later(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, {})
    for test, directory in (("a:1", "a-1"), ("b", "b"), ("a:1", "a-1")):
        writer.add(test, directory)
        writer.append(test, [measurement(test)])
    writer.close()
    counts = [len(read_measurements(tmp_path / name / "results.jsonl")[0]) for name in ("a-1", "b")]
    assert counts == [2, 1]
    assert writer.path("a:1") == tmp_path / "a-1" / "results.jsonl"


def test_a_test_that_cannot_be_added_is_refused(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, {})
    (tmp_path / "a").write_text("")
    with pytest.raises(MachineRefuses, match="cannot write results"):
        writer.add("a", "a")
    writer.close()


blocks = st.builds(
    TrialBlock,
    trial=st.integers(0, 2**31),
    worker=st.none() | st.integers(0, 64),
    block=st.builds(Block, st.text(max_size=8), st.lists(st.text(max_size=20), max_size=3).map(tuple)),
)


@given(st.lists(blocks, max_size=6))
def test_blocks_come_back_as_they_were_written(kept: list[TrialBlock]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        writer = ResultsWriter(Path(directory), {"a": "dir"})
        for trial, worker, block in kept:
            writer.blocks("a", trial, worker, [block])
        writer.close()
        assert read_blocks(Path(directory) / "dir" / "blocks.jsonl") == (tuple(kept), True)


def test_the_blocks_of_a_trial_are_one_write_and_synced_with_the_rest(
    writer: ResultsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []
    synced: list[int] = []
    real = os.write
    monkeypatch.setattr("os.write", lambda file, data: written.append(bytes(data)) or real(file, data))
    monkeypatch.setattr("os.fdatasync", synced.append)
    writer.blocks("a", 1, None, [Block("x", ("1",)), Block("y", ())])
    writer.append("a", [measurement()])
    writer.sync()
    assert [data.count(b"\n") for data in written] == [2, 1]
    assert len(set(synced)) == 2


def test_no_blocks_make_no_file(writer: ResultsWriter, tmp_path: Path) -> None:
    writer.blocks("a", 1, 0, [])
    assert os.listdir(tmp_path / "a") == ["results.jsonl"]
    assert read_blocks(tmp_path / "a" / "blocks.jsonl") == ((), True)


def test_blocks_that_a_killed_writer_left_torn_are_reported_and_cut_by_the_next(tmp_path: Path) -> None:
    first = ResultsWriter(tmp_path, {"a": "a"})
    first.blocks("a", 1, 0, [Block("x", ("é",))])
    first.close()
    file = tmp_path / "a" / "blocks.jsonl"
    whole = file.read_bytes()
    for length in range(1, len(whole)):
        file.write_bytes(whole + whole[:length])
        assert read_blocks(file) == ((TrialBlock(1, 0, Block("x", ("é",))),), False)
        again = ResultsWriter(tmp_path, {"a": "a"})
        again.blocks("a", 2, None, [Block("y", ())])
        again.close()
        assert [kept.trial for kept in read_blocks(file)[0]] == [1, 2]


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"trial":"1","worker":0,"name":"x","lines":[]}',
        '{"trial":1,"worker":true,"name":"x","lines":[]}',
        '{"trial":1,"worker":0,"name":1,"lines":[]}',
        '{"trial":1,"worker":0,"name":"x","lines":"l"}',
        '{"trial":1,"worker":0,"name":"x","lines":[1]}',
    ],
)
def test_a_bad_line_among_blocks_is_one_error_that_names_it(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "blocks.jsonl"
    file.write_text('{"trial":1,"worker":0,"name":"x","lines":[]}\n' + bad + "\n")
    with pytest.raises(InputError, match=r"blocks\.jsonl:2: ") as error:
        read_blocks(file)
    assert "\n" not in str(error.value)


@given(
    st.text()
    | st.sampled_from([".", "..", "/", "-", "", "experiment.json", "experiment.json.new", "a" * 300])
)
def test_a_directory_name_is_safe(name: str) -> None:
    made = directory_name(name, ())
    assert made
    assert len(made.encode()) <= 100
    assert "/" not in made
    assert "\0" not in made
    assert not made.startswith((".", "-"))
    assert made not in ("experiment.json", "experiment.json.new")


@given(st.lists(st.text(max_size=4) | st.sampled_from(["a", "a-2", "a 2", "a-2-2", "x" * 70]), max_size=12))
def test_directory_names_are_unique(names: list[str]) -> None:
    made: list[str] = []
    for name in names:
        made.append(directory_name(name, made))
    assert len(set(made)) == len(names)


def test_a_plain_name_stays_as_it_is() -> None:
    assert directory_name("gzip-5_c+.1", ()) == "gzip-5_c+.1"
