"""A release: refused where the clone is not what its tag says; its files are signed and verified by a key of gpg."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.beside, pytest.mark.quick, pytest.mark.needs_program("git")]
KEY = "release@example.org"


def git(place: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", place, *identity, *words], check=True, capture_output=True)


@pytest.fixture
def release(tool: Callable[[str], ModuleType]) -> ModuleType:
    return tool("release")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a version, its tag and its section."""
    place = tmp_path / "clone"
    (place / "src/etude").mkdir(parents=True)
    (place / "src/etude/version.py").write_text('__version__ = "7.1"\n')
    (place / "CHANGELOG.md").write_text("# Changelog\n\n## [7.1]\n")
    git(tmp_path, "init", "-q", str(place))
    git(place, "add", ".")
    git(place, "commit", "-qm", "a")
    git(place, "tag", "v7.1")
    return place


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A key that is thrown away."""
    home = Path("/tmp", f"etude-gpg-{os.getpid()}")  # its sockets need a short path
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    make = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", KEY, "ed25519", "sign"]
    subprocess.run(make, check=True, capture_output=True)
    yield KEY
    subprocess.run(["gpgconf", "--kill", "all"], check=False)
    shutil.rmtree(home, ignore_errors=True)


def test_a_clean_clone_with_its_tag_and_its_section_is_taken(release: ModuleType, clone: Path) -> None:
    release.check_tree(clone)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        pytest.param(
            lambda clone: (clone / "more").write_text(""), "more", id="a file that is not committed"
        ),
        pytest.param(lambda clone: git(clone, "commit", "-qm", "b", "--allow-empty"), "v7.1", id="no tag"),
        pytest.param(
            lambda clone: (
                (clone / "CHANGELOG.md").write_text("## [Unreleased]\n"),
                git(clone, "commit", "-qam", "b"),
                git(clone, "tag", "-f", "v7.1"),
            ),
            "[7.1]",
            id="no section",
        ),
    ],
)
def test_another_clone_is_refused(
    release: ModuleType, clone: Path, spoil: Callable[[Path], object], named: str
) -> None:
    spoil(clone)
    with pytest.raises(release.Refused) as refused:
        release.check_tree(clone)
    assert named in str(refused.value)


@pytest.mark.needs_program("gpg", package="gnupg")
def test_its_files_are_signed_and_another_file_is_noticed(
    release: ModuleType, key: str, tmp_path: Path
) -> None:
    output = tmp_path / "dist"
    output.mkdir()
    (output / "etude-7.1.tar.gz").write_bytes(b"1")
    release.sign(output, key)
    release.verify(output)
    (output / "etude-7.1.tar.gz").write_bytes(b"2")
    with pytest.raises(release.Refused):
        release.verify(output)
    (output / "SHA256SUMS").write_text("")
    with pytest.raises(release.Refused):
        release.verify(output)


def test_a_clone_with_edits_ends_with_1_and_one_line(repository: Path, clone: Path) -> None:
    shutil.copytree(repository / "packaging", clone / "packaging")
    done = subprocess.run(
        [sys.executable, clone / "packaging/release.py", "--key", KEY],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_tools_are_installed_anew_when_they_are_pinned_anew(release: ModuleType, tmp_path: Path) -> None:
    place, pins = tmp_path / "tools", tmp_path / "pins.txt"
    pins.write_text("# no package\n")
    release.install_tools(place, pins)
    (place / "of the first").touch()
    release.install_tools(place, pins)
    assert (place / "of the first").exists()
    pins.write_text("etude-that-is-nowhere==1 --hash=sha256:" + 64 * "0" + "\n")
    with pytest.raises(release.Refused):
        release.install_tools(place, pins)
    assert (place / "bin/python").exists()
    assert {(place / "of the first").exists(), (place / pins.name).exists()} == {False}
