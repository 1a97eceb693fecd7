"""The script of a job, run by this machine's sh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.cluster.pool.job import Job
from etude.cluster.pool.job_files import (
    Checks,
    JobStatus,
    StagedJob,
    last_line,
    note,
    parse_status,
    read_end,
    read_start,
    stage_job,
    staged_job,
)
from etude.errors import UsageError
from support.profiles import examples

BARE = Checks(None)


def ran(place: Path, *command: str, checks: Checks = BARE, **changes: object) -> tuple[int, JobStatus | None]:
    job = Job(**{"name": "a", "command": command, "place": place, "directory": place} | changes)  # type: ignore[arg-type]
    stage_job(job, StagedJob("t", 1.0), checks)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(["sh", str(place / "job.sh")], env=environment, check=False, timeout=60)
    return done.returncode, read_end(place)


def test_a_job_writes_how_it_ended(tmp_path: Path) -> None:
    code, ended = ran(tmp_path / "a", "sh", "-c", "echo said; exit 3")
    assert ended is not None
    assert ended.ended_s is not None
    assert (code, ended.how, ended.code) == (3, "failed", 3)
    assert last_line(tmp_path / "a") == "said"
    assert ended.began_s <= ended.ended_s
    began = read_start(tmp_path / "a")
    assert began is not None
    assert began.nodes == os.uname().nodename


def test_words_places_and_values_come_as_they_are(tmp_path: Path) -> None:
    place = tmp_path / "a 'b\" $c"
    code, ended = ran(
        place, "sh", "-c", 'printf "%s|" "$X" "$@" >got', "sh", "it's", "$Y `z`", environment={"X": "1'\n2"}
    )
    assert code == 0
    assert ended is not None
    assert (place / "got").read_text() == "1'\n2|it's|$Y `z`|"


def test_a_node_of_another_architecture_runs_nothing(tmp_path: Path) -> None:
    code, ended = ran(tmp_path, "touch", "ran", checks=Checks(None, machine="s390x"))
    assert ended is not None
    assert (code, ended.how, ended.code) == (122, "other-architecture", None)
    assert "not a s390x" in ended.why
    assert not (tmp_path / "ran").exists()


def test_a_node_without_space_runs_nothing(tmp_path: Path) -> None:
    code, ended = ran(tmp_path, "touch", "ran", checks=Checks(None, space_kib=10**15))
    assert ended is not None
    assert (code, ended.how) == (123, "no-space")
    assert "MiB" in ended.why
    assert not (tmp_path / "ran").exists()


def test_a_node_has_to_have_this_very_etude(tmp_path: Path) -> None:
    code, ended = ran(tmp_path / "a", "true", checks=Checks(sys.executable))
    assert (code, ended and ended.how) == (0, "done")
    code, ended = ran(tmp_path / "b", "true", checks=Checks("/no/python"))
    assert ended is not None
    assert (code, ended.how) == (121, "no-etude")
    assert "/no/python" in ended.why
    code, ended = ran(tmp_path / "c", "true", checks=Checks(sys.executable, version="etude 99"))
    assert (code, ended and ended.how) == (121, "no-etude")


def test_a_node_without_the_directory_runs_nothing(tmp_path: Path) -> None:
    code, ended = ran(tmp_path, "true", directory=tmp_path / "none")
    assert (code, ended and ended.how) == (124, "no-space")


def test_a_job_that_is_ended_by_a_signal_leaves_it_to_others_to_say_so(tmp_path: Path) -> None:
    code, ended = ran(tmp_path, "sh", "-c", "kill -TERM $PPID")
    assert code == 143
    assert ended is None
    assert read_start(tmp_path) is not None


def test_a_variable_has_a_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="A;B"):
        ran(tmp_path, "true", environment={"A;B": "1"})


def test_the_record_is_read_back_and_a_new_job_has_no_end(tmp_path: Path) -> None:
    ran(tmp_path, "true")
    assert read_end(tmp_path) is not None
    stage_job(Job("a", ("true",), tmp_path, tmp_path), StagedJob("u", 2.0), BARE)
    assert read_end(tmp_path) is None
    assert staged_job(tmp_path) == StagedJob("u", 2.0)
    note(tmp_path, StagedJob("u", 2.0, "17"))
    assert staged_job(tmp_path) == StagedJob("u", 2.0, "17")
    assert staged_job(tmp_path / "none") is None


@pytest.mark.parametrize("missing", ["how", "ended_s", "began_s", "nodes"])
def test_an_end_says_how_when_and_where(tmp_path: Path, missing: str) -> None:
    ran(tmp_path, "true")
    said = json.loads((tmp_path / "end.json").read_text())
    del said[missing]
    (tmp_path / "end.json").write_text(json.dumps(said))
    assert read_end(tmp_path) is None


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists)
)
def test_any_file_is_read_or_is_none(content: object) -> None:
    parse_status(content if isinstance(content, str) else str(content))


@settings(max_examples=examples(20))
@given(st.binary(max_size=80))
def test_any_record_is_read_or_is_none(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    place = tmp_path_factory.mktemp("place")
    for name in ("job.json", "end.json", "begun.json", "output"):
        (place / name).write_bytes(content)
    staged_job(place), read_end(place), read_start(place)
    assert last_line(place).isprintable()
