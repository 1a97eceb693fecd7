"""The roots in which packages are tried (packaging/bare_root.py): nothing of them stays, whatever happens."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bare_root import BareRoot, CannotMake, bare_root

pytestmark = [
    pytest.mark.beside,
    pytest.mark.needs_root,
    pytest.mark.needs_program("mmdebstrap"),
]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[BareRoot]:
    seen = tmp_path / "seen"
    seen.mkdir()
    (seen / "note").write_text("from outside")
    try:
        with bare_root("bookworm", tmp_path, seen={"/seen": seen}) as root:
            yield root
    except CannotMake as reason:
        pytest.skip(str(reason))


def test_what_a_command_writes_stays_until_the_end_and_never_in_the_cache(root: BareRoot) -> None:
    root.write("/tmp/from/here", "1")
    root.run("sh", "-c", "echo 2 >>/tmp/from/here; rm /etc/hostname /etc/issue; echo 3 >/etc/made")
    assert root.run("cat", "/tmp/from/here", "/etc/made").stdout == "12\n3\n"
    assert root.path("/tmp/from/here").read_text() == "12\n"
    assert root.run("test", "-e", "/etc/issue", check=False).returncode == 1
    assert (root.lower / "etc/issue").exists()
    assert not (root.lower / "etc/made").exists()
    assert root.run("stat", "-c", "%a", "/tmp").stdout == "1777\n"


def test_it_is_another_release_without_a_compiler_and_without_our_environment(
    root: BareRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_TEST", "1")
    assert "VERSION_CODENAME=bookworm" in root.run("cat", "/etc/os-release").stdout
    compilers = root.run("sh", "-c", "command -v cc gcc cargo rustc", check=False).stdout
    assert compilers == ""
    assert "OF_THE_TEST" not in root.run("env").stdout
    assert root.run("cat", "/seen/note").stdout == "from outside"
    assert root.run("touch", "/seen/other", check=False).returncode != 0


def test_a_command_that_hangs_ends_with_all_that_it_started_and_mounts_are_gone(root: BareRoot) -> None:
    sleep = "sleep 987654"
    with pytest.raises(subprocess.TimeoutExpired):
        root.run("sh", "-c", f"setsid {sleep} & mount -t tmpfs none /mnt; {sleep}", timeout=5)
    running = [Path("/proc", each, "cmdline") for each in os.listdir("/proc") if each.isdigit()]
    assert not [each for each in running if each.exists() and b"987654" in each.read_bytes()]
    assert str(root.state) not in Path("/proc/self/mountinfo").read_text()
    assert root.run("true").returncode == 0


def test_it_has_a_network_of_its_own(root: BareRoot) -> None:
    names = [line.split(":")[0].strip() for line in root.run("cat", "/proc/net/dev").stdout.splitlines()[2:]]
    assert names == ["lo"]


def test_a_failure_leaves_no_directory(tmp_path: Path) -> None:
    def fail() -> None:
        with bare_root("bookworm", tmp_path) as root:
            root.run("false")

    with pytest.raises((AssertionError, CannotMake)):
        fail()
    assert list(tmp_path.iterdir()) == []
