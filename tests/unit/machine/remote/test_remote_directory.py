"""The shell script that holds our directory on a host: run here, as it is run there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.machine.remote.link import keeper_command, parse_facts


def keeper(directory: Path) -> tuple[subprocess.Popen[str], list[str]]:
    """One that is ready, or has failed, and what it has said."""
    process = subprocess.Popen(
        ["sh", "-c", keeper_command(str(directory))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line.rstrip("\n"))
        if said[-1] == "ready":
            break
    return process, said


def ended(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=20)


@pytest.mark.parametrize("name", ["plain", "a b'c\"$HOME"])
def test_its_directory_lives_as_long_as_its_input(tmp_path: Path, name: str) -> None:
    base = tmp_path / name
    base.mkdir()
    process, said = keeper(base)
    facts = parse_facts(said)
    own = Path(facts.directory)
    assert own.parent == base
    assert own.stat().st_mode & 0o777 == 0o700
    assert facts.free_bytes is not None
    assert facts.release
    ended(process)
    assert list(base.iterdir()) == []


def test_one_that_is_killed_leaves_what_the_next_removes_and_spares_the_living(tmp_path: Path) -> None:
    first, said = keeper(tmp_path)
    left = Path(parse_facts(said).directory)
    first.kill()
    ended(first)
    assert left.exists()
    second, said = keeper(tmp_path)
    assert parse_facts(said).removed == 1
    third, said = keeper(tmp_path)
    assert parse_facts(said).removed == 0, "the second lives"
    assert not left.exists()
    ended(second)
    ended(third)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_its_reason(tmp_path: Path) -> None:
    process, said = keeper(tmp_path / "none")
    ended(process)
    with pytest.raises(ValueError, match=str(tmp_path / "none")):
        parse_facts(said)


@given(st.lists(st.text(max_size=30), max_size=8))
def test_whatever_answers_is_understood_or_refused(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_facts([line for line in lines if not line.startswith("directory")])


def test_a_process_of_another_boot_owns_nothing(tmp_path: Path) -> None:
    stat = Path("/proc/self/stat").read_text()
    pid, began = stat.split()[0], stat.rsplit(")", 1)[1].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for name, of in {"etude-remote-1": "another-boot", "etude-remote-2": boot}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "keeper").write_text(f"{pid} {began} {of}\n")
    process, said = keeper(tmp_path)
    ended(process)
    assert parse_facts(said).removed == 1
    assert [path.name for path in tmp_path.iterdir()] == ["etude-remote-2"]


def test_what_another_namespace_of_processes_made_is_left_alone(tmp_path: Path) -> None:
    """Two containers that share the directory: whether its keeper lives cannot be told from here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    made = tmp_path / "etude-remote-1-1"
    made.mkdir()
    (made / "keeper").write_text(f"1 1 {boot} pid:[1]\n")
    process, _ = keeper(tmp_path)
    process.communicate("")
    assert made.exists()
