"""Which other node a process was given, and the lines that run something there."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.cluster.pool.allocation import PLACE_VARIABLE, Node, address_of, other_node
from etude.errors import MachineRefuses, UsageError
from etude.peak.harnesses.spec import read_harness
from etude.peak.task import TrialRequest
from support.profiles import examples

GIVEN = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "lab[3-4]", "SLURM_JOB_NUM_NODES": "2"}
HARNESS = """\
[goal]
mean = "40 ms"
[load]
lowest = 1
highest = 10
[reader]
kind = "windows"
[commands]
start = "serve"
load = "offer {load} {server}"
apart = true
"""


def slurm(words: Sequence[str]) -> str:
    """Two nodes, of which the second has an address that is not its name."""
    if words[1:3] == ["show", "hostnames"]:
        return "lab3\nlab4\n"
    return f"NodeName={words[-1]} Arch=x86_64 NodeAddr=10.0.0.4 OS=Linux 6.1 #1 SMP Port=6818\n"


@pytest.mark.parametrize(("here", "other"), [("lab3", "lab4"), ("lab4", "lab3"), ("", "lab4")])
def test_the_other_node_is_the_one_that_this_process_is_not_on(here: str, other: str) -> None:
    assert other_node({**GIVEN, "SLURMD_NODENAME": here}, slurm) == Node("7", other, "10.0.0.4")


@pytest.mark.parametrize("missing", [*GIVEN])
def test_without_a_job_of_two_nodes_there_is_no_other(missing: str) -> None:
    assert other_node({name: text for name, text in GIVEN.items() if name != missing}, slurm) is None


def test_a_node_without_an_address_is_reached_by_its_name() -> None:
    assert address_of("NodeName=lab4 Arch=x86_64", "lab4") == "lab4"


@settings(max_examples=examples(50))
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
@pytest.mark.parametrize("hold", [False, True])
def test_a_command_arrives_at_the_other_node_as_it_was_written(hold: bool, text: str) -> None:
    """Whatever stands in it: the line is for a shell, and so is what it carries."""
    words = shlex.split(Node("7", "lab4", "a").line(text, Path("/in a place"), hold=hold))
    assert words[:2] == ["exec", "srun"]
    assert words[-1] == text
    assert {"--jobid=7", "--nodelist=lab4", "--chdir=/in a place", f"{PLACE_VARIABLE}=/in a place"} <= {
        *words
    }


def held(command: str) -> subprocess.Popen[bytes]:
    """What would run on the other node."""
    line = shlex.split(Node("7", "lab4", "a").line(command, Path("/tmp"), hold=True))
    return subprocess.Popen(line[line.index("/bin/sh") :])


def test_what_is_held_fails_as_its_command_does() -> None:
    assert held("exit 3").wait(10) == 3


def test_what_is_held_stays_once_its_command_has_ended_well() -> None:
    """Its step would end, and with it what the command has left running."""
    process = held("exit 0")
    try:
        while process.poll() is None and b"infinity" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_sweep_ends_what_was_started_for_its_directory_and_nothing_else(tmp_path: Path) -> None:
    there, elsewhere = (
        subprocess.Popen(
            ["sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done"],
            env={PLACE_VARIABLE: str(place), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE,
        )
        for place in (tmp_path, tmp_path / "other")
    )
    try:
        for process in (there, elsewhere):
            assert process.stdout is not None
            process.stdout.readline()  # it heeds no SIGTERM by now
        sweep = shlex.split(Node("7", "lab4", "a").sweep(tmp_path, 0.1))
        subprocess.run(sweep[sweep.index("/bin/sh") :], check=True)
        assert there.wait(10) == -9
        assert elsewhere.poll() is None
    finally:
        for process in (there, elsewhere):
            process.kill()
            process.wait()
            process.stdout.close()


def harness(tmp_path: Path, text: str = HARNESS) -> Path:
    path = tmp_path / "h.toml"
    path.write_text(text)
    return path


def given_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, srun: str) -> None:
    """An allocation whose srun is a script."""
    programs = tmp_path / "bin"
    programs.mkdir()
    answers = 'case "$*" in *hostnames*) echo lab3; echo lab4;; *) echo NodeAddr=10.0.0.4;; esac'
    for name, text in (("scontrol", answers), ("srun", srun)):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    for name, value in (*GIVEN.items(), ("SLURMD_NODENAME", "lab3"), ("PATH", f"{programs}:/usr/bin:/bin")):
        monkeypatch.setenv(name, value)


def test_a_harness_that_is_apart_wants_two_nodes_and_the_address_in_its_load(tmp_path: Path) -> None:
    assert read_harness(harness(tmp_path)).nodes == 2
    assert read_harness(harness(tmp_path, HARNESS.replace("apart = true", ""))).nodes == 1
    with pytest.raises(Exception, match=r"h.toml:11: \[commands\] load .*\{server\}"):
        read_harness(harness(tmp_path, HARNESS.replace(" {server}", "")))


def test_on_one_machine_the_server_is_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    text = HARNESS.replace('"serve"', '"echo {server} >asked; exec sleep 100"')
    with read_harness(harness(tmp_path, text)).bench({}, tmp_path / "place") as bench:
        assert bench.run(TrialRequest(5.0, 0.1, "test"), lambda windows: True).ended == "not-made"
    assert (tmp_path / "place" / "asked").read_text() == "127.0.0.1\n"


def test_a_node_that_takes_no_commands_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_two(tmp_path, monkeypatch, "echo srun: error: unknown >&2; exit 1")
    with (
        pytest.raises(MachineRefuses, match=r"h\.toml: .*lab4"),
        read_harness(harness(tmp_path)).bench({}, tmp_path / "place"),
    ):
        pass


def test_what_is_on_another_node_is_not_confined_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_two(tmp_path, monkeypatch, "exit 0")
    with (
        pytest.raises(UsageError, match="cannot confine it"),
        read_harness(harness(tmp_path)).bench({}, tmp_path / "place", ("taskset", "1")),
    ):
        pass
