from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cluster.pool.job import How, Job, JobEnd
from etude.cluster.pool.journal import FILE, Journal, timeline
from etude.errors import InputError, MachineRefuses
from etude.results import writer
from etude.results.writer import sole_writer
from support.golden import Golden

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
nodes = st.from_regex("n[0-9]{1,2}", fullmatch=True)
times = st.floats(0, 1e10)


def a_job(directory: Path, number: int = 1, **changes: object) -> Job:
    members = {
        "name": f"cell {number}",
        "command": ("true",),
        "place": directory / f"{number}",
        "directory": directory,
    }
    return Job(**members | changes)  # type: ignore[arg-type]


def an_end(id: str = "7", how: How = "done", **changes: object) -> JobEnd:
    members = {"id": id, "how": how, "code": 0, "nodes": ("n1",), "why": "", "submitted_s": 10.0}
    return JobEnd(**members | {"started_s": 12.0, "ended_s": 75.0} | changes)  # type: ignore[arg-type]


def test_what_was_submitted_and_has_not_ended_is_unfinished(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    first, second, third = (a_job(tmp_path, number) for number in (1, 2, 3))
    for job in (first, second, third):
        journal.submitting(job, f"w{job.name}", 10.0)
    journal.submitted(first, "7")
    journal.submitted(second, "8")
    journal.ended(first, an_end())
    for each in (journal, Journal(tmp_path)):
        assert [(left.job, left.id) for left in each.unfinished()] == [(second, "8"), (third, None)]
        assert each.jobs[0].ended == an_end()


def test_a_torn_last_line_is_dropped_and_what_follows_is_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.submitting(a_job(tmp_path), "a", 1.0)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole + b'{"event":"submit' + 500 * b" ")
    mended = Journal(tmp_path)
    assert mended.torn
    mended.submitted(a_job(tmp_path), "3")
    assert not Journal(tmp_path).torn
    assert [each.id for each in Journal(tmp_path).unfinished()] == ["3"]


def test_who_only_reads_leaves_a_line_that_is_being_written_alone(tmp_path: Path) -> None:
    Journal(tmp_path).submitting(a_job(tmp_path), "a", 1.0)
    torn = (tmp_path / FILE).read_bytes() + b'{"event":"submit'
    (tmp_path / FILE).write_bytes(torn)
    assert Journal(tmp_path).torn
    assert (tmp_path / FILE).read_bytes() == torn


def test_a_line_for_which_there_was_no_space_is_told_and_what_follows_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, write = Journal(tmp_path), os.pwrite
    journal.submitting(a_job(tmp_path), "a", 1.0)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda file, text, at: write(file, text[:7], at))
        with pytest.raises(MachineRefuses, match="free some space"):
            journal.submitted(a_job(tmp_path), "3")
    journal.submitted(a_job(tmp_path), "4")
    assert [each.id for each in Journal(tmp_path).unfinished()] == ["4"]


@pytest.mark.parametrize("line", ["[]", "1", "{}", '{"event":"ended","place":"none"}', "no JSON"])
def test_a_line_that_is_none_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    Journal(tmp_path).submitting(a_job(tmp_path), "a", 1.0)
    with open(tmp_path / FILE, "a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match=rf"{FILE}:2: is no line"):
        Journal(tmp_path)


def test_a_directory_that_was_moved_knows_its_places(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    Journal(old).submitting(a_job(old), "a", 1.0)
    old.rename(new)
    assert Journal(new).unfinished()[0].job.place == new / "1"


def test_a_second_controller_of_a_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOCK_WAIT_S", 0.0)
    with sole_writer(tmp_path):
        Journal(tmp_path)
        with pytest.raises(MachineRefuses, match=str(tmp_path)), sole_writer(tmp_path):
            raise AssertionError("two controllers")


@given(st.data())
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    journal = Journal(directory)
    for number in range(data.draw(st.integers(1, 4))):
        job = Job(
            data.draw(text),
            tuple(data.draw(st.lists(text, min_size=1, max_size=3))),
            directory / str(number),
            directory,
            data.draw(st.integers(1, 3)),
            frozenset(data.draw(st.lists(nodes, max_size=3))),
            data.draw(st.none() | nodes),
            data.draw(st.dictionaries(text, text, max_size=2)),
        )
        journal.submitting(job, data.draw(text), data.draw(times))
        if data.draw(st.booleans()):
            journal.submitted(job, "1")
            where = tuple(data.draw(st.lists(nodes, max_size=2)))
            ended = JobEnd(
                *("1", data.draw(st.sampled_from(get_args(How))), data.draw(st.none() | st.integers(0, 255))),
                *(where, data.draw(text), data.draw(times), data.draw(st.none() | times), data.draw(times)),
            )
            journal.ended(job, ended)
    assert Journal(directory).jobs == journal.jobs


def test_a_timeline_has_a_row_a_job_in_the_order_in_which_they_began(tmp_path: Path, golden: Golden) -> None:
    journal = Journal(tmp_path)
    ends = {
        1: an_end("1", "node-lost", why="its node failed (n1)", started_s=12.0, ended_s=75.0),
        2: an_end("2", nodes=("n2", "n3"), started_s=11.0, ended_s=31.4),
        3: an_end("3", "held", nodes=(), started_s=None, ended_s=20.0, why="its owner holds it"),
    }
    for number in (1, 2, 3, 4):
        job = a_job(tmp_path, number)
        journal.submitting(job, "", 10.0)
        journal.submitted(job, str(number))
        if number in ends:
            journal.ended(job, ends[number])
    lines = timeline(journal.jobs)
    assert [re.findall(r"cell \d", line) for line in lines] == [
        [],
        ["cell 2"],
        ["cell 1"],
        ["cell 3"],
        ["cell 4"],
    ]
    golden("\n".join(lines))
    assert timeline(()) == ()
