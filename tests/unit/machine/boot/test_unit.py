"""Who goes on at boot: a unit of systemd, or a line in rc.local, below a root of the test's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import MachineRefuses
from etude.machine.boot import unit


@pytest.fixture
def systemd(tmp_path: Path) -> Path:
    (tmp_path / "root/run/systemd/system").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A machine with another first process."""
    (tmp_path / "root/etc").mkdir(parents=True)
    return tmp_path / "root"


def nothing(*words: str) -> str:
    return ""


def test_the_unit_is_written_enabled_and_told_to_systemd(systemd: Path) -> None:
    calls: list[tuple[str, ...]] = []
    assert not unit.status(systemd).installed
    found = unit.install(systemd, lambda *words: calls.append(words))
    assert (found.by, found.file, found.installed) == (
        "systemd",
        "/etc/systemd/system/etude-resume.service",
        True,
    )
    wanted = systemd / "etc/systemd/system/multi-user.target.wants/etude-resume.service"
    assert str(wanted.readlink()) == found.file
    assert calls == [("systemctl", "daemon-reload")]


def test_installing_twice_is_as_good_as_once_and_removing_leaves_nothing(systemd: Path) -> None:
    before = sorted(path for path in systemd.rglob("*") if not path.is_dir())
    for _ in range(2):
        assert unit.install(systemd, nothing).installed
    for _ in range(2):
        assert not unit.remove(systemd, nothing).installed
    assert sorted(path for path in systemd.rglob("*") if not path.is_dir()) == before


def test_an_image_whose_first_process_will_be_systemd_gets_the_unit(other: Path) -> None:
    (other / "sbin").mkdir()
    (other / "sbin/init").symlink_to("../lib/systemd/systemd")

    def run(*words: str) -> None:
        raise AssertionError(words)

    assert unit.install(other, run).by == "systemd"


@pytest.mark.parametrize("broken", ["disabled", "other"])
def test_a_unit_that_would_not_start_this_etude_does_not_count(systemd: Path, broken: str) -> None:
    unit.install(systemd, nothing)
    if broken == "disabled":
        (systemd / unit.WANTED).unlink()
    else:
        (systemd / unit.UNIT).write_text(unit.unit_text().replace(sys.executable, "/other/python"))
    found = unit.status(systemd)
    assert (found.installed, bool(found.why)) == (False, True)
    assert unit.install(systemd, nothing).installed


@pytest.mark.needs_program("systemd-analyze", package="systemd")
def test_systemd_understands_the_unit(
    tmp_path: Path, boot_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "an odd place, $HOME, of 100%"
    odd.mkdir()
    python = odd / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    monkeypatch.setenv("PYTHONPATH", '/a b:/$c:/"')
    file = tmp_path / "etude-resume.service"
    file.write_text(unit.unit_text())
    words = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_systemd_a_line_stands_in_rc_local(other: Path) -> None:
    found = unit.install(other, nothing)
    assert (found.by, found.installed) == ("rc.local", True)
    script = other / "etc/rc.local"
    assert script.stat().st_mode & 0o111 == 0o111
    assert script.read_text().startswith("#!/bin/sh\n")
    unit.remove(other, nothing)
    assert not script.exists()


def test_an_rc_local_that_is_there_keeps_all_it_has_and_its_mode(other: Path) -> None:
    script = other / "etc/rc.local"
    text = "#!/bin/sh -e\nip link set eth0 up\n\nexit 0\n"
    script.write_text(text)
    script.chmod(0o700)
    for _ in range(2):
        unit.install(other, nothing)
    lines = script.read_text().splitlines()
    assert lines == [*text.splitlines()[:3], unit.rc_line(), "exit 0"]
    assert script.stat().st_mode & 0o777 == 0o711
    unit.remove(other, nothing)
    assert script.read_text() == text


def test_a_line_in_an_rc_local_that_is_not_run_does_not_count(other: Path) -> None:
    unit.install(other, nothing)
    (other / "etc/rc.local").chmod(0o644)
    assert "chmod +x" in (unit.status(other).why or "")
    assert unit.install(other, nothing).installed


@given(st.lists(st.sampled_from(["a", "exit 0", "exit", "", "# exit", "exitcode=1"]), max_size=6))
def test_what_is_put_into_an_rc_local_runs_and_can_be_taken_out_again(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    put = unit.with_line(text, "ours # etude boot-resume")
    assert unit.without_line(put) == text
    assert unit.with_line(put, "ours # etude boot-resume") == put
    written = [line for line in lines if line]
    if written and written[-1].split(" ")[0] == "exit":
        assert put.splitlines()[-1 - lines[::-1].index(written[-1])].startswith("exit")
    else:
        assert put.splitlines()[-1].startswith("ours")


def test_the_line_of_rc_local_waits_for_nothing_and_runs_only_where_there_is_a_record(
    tmp_path: Path, boot_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"python": f'echo "$@" > {tmp_path}/ran', "logger": "cat > /dev/null"}.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    script = f"{unit.rc_line()}\nwait\n"
    subprocess.run(["sh", "-e", "-c", script], check=True)
    assert not (tmp_path / "ran").exists()
    boot_directory.mkdir()
    (boot_directory / "resume.json").write_text("{}")
    subprocess.run(["sh", "-e", "-c", script], check=True)
    assert (tmp_path / "ran").read_text().split() == ["-P", "-m", "etude.cli.main", "boot-resume", "resume"]


def test_a_directory_that_cannot_be_written_is_one_line(systemd: Path) -> None:
    (systemd / "etc").write_text("in the way")
    with pytest.raises(MachineRefuses, match=str(systemd / "etc")):
        unit.install(systemd, nothing)


def test_a_python_that_others_may_change_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("")
    python.chmod(0o777)
    monkeypatch.setattr("sys.executable", str(python))
    assert any(str(python) in line for line in unit.untrusted_programs())
