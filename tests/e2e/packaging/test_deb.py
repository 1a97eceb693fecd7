"""The Debian package: who answers for it, its control file, and the scripts that make it."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.quick, pytest.mark.beside]


@pytest.fixture
def deb(tool: Callable[[str], ModuleType]) -> ModuleType:
    return tool("deb")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a commit by one and the same person."""
    identity = ("-c", "user.name=Ada Clone", "-c", "user.email=ada@example.org")
    for words in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    return tmp_path


def test_the_maintainer_is_who_the_environment_names(deb: ModuleType) -> None:
    named = {"DEBFULLNAME": "Ève Šmíd", "DEBEMAIL": "eve@example.org"}
    assert deb.maintainer(named) == "Ève Šmíd <eve@example.org>"


@pytest.mark.needs_program("git")
def test_without_a_name_it_is_who_committed_last(
    deb: ModuleType, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deb, "PROJECT", clone)
    assert deb.maintainer({}) == "Ada Clone <ada@example.org>"


@pytest.mark.parametrize(
    "named",
    [
        {"DEBFULLNAME": "Ève"},
        {"DEBEMAIL": "eve@example.org"},
        {"DEBFULLNAME": "Ève", "DEBEMAIL": "eve"},
        {"DEBFULLNAME": "Ève\nSection: x", "DEBEMAIL": "eve@example.org"},
    ],
    ids=["no address", "no name", "an address without a host", "two lines"],
)
def test_half_a_maintainer_is_refused(deb: ModuleType, named: dict[str, str]) -> None:
    with pytest.raises(deb.NoMaintainer):
        deb.maintainer(named)


def test_nobody_is_refused_in_one_line_with_5(
    deb: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deb, "PROJECT", tmp_path)
    monkeypatch.delenv("DEBFULLNAME", raising=False)
    monkeypatch.delenv("DEBEMAIL", raising=False)
    monkeypatch.setattr("sys.argv", ["deb.py", "etude.whl", "bookworm", "--output", str(tmp_path)])
    assert deb.main() == 5
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_wheels_that_cannot_be_downloaded_are_an_exit_of_5(repository: Path, tmp_path: Path) -> None:
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, repository / "packaging/wheelhouse.py", "3.12"]
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "")
    assert [path.suffix for path in (tmp_path / "etude/wheels").iterdir()] == [".lock"]


@pytest.mark.needs_program("dpkg-deb", package="dpkg")
def test_the_control_file_is_read_by_dpkg(deb: ModuleType, tmp_path: Path) -> None:
    deb.write(tmp_path / "tree/usr/share/a", b"text")
    deb.control(tmp_path / "tree", "1.2-1~deb13", "Ève Šmíd <eve@example.org>", "trixie", "3.13", 36)
    made = tmp_path / "a.deb"
    build = ["dpkg-deb", "--root-owner-group", "--build", tmp_path / "tree", made]
    subprocess.run(build, check=True, capture_output=True)
    shown = subprocess.run(
        ["dpkg-deb", "--field", made, "Maintainer", "Version", "Depends"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    fields = dict(line.split(": ", 1) for line in shown.splitlines())
    assert fields == {
        "Maintainer": "Ève Šmíd <eve@example.org>",
        "Version": "1.2-1~deb13",
        "Depends": "python3 (>= 3.13), python3 (<< 3.14), libc6 (>= 2.36), libgcc-s1, libstdc++6, zlib1g",
    }


def test_no_script_that_packages_imports_what_is_of_the_tests(repository: Path) -> None:
    """Tests import from packaging, never the other way."""
    ours = {path.name.removesuffix(".py") for path in (repository / "tests").iterdir()}
    found = {
        (script.name, name.partition(".")[0])
        for script in (repository / "packaging").rglob("*.py")
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        for name in imported(node)
    }
    assert {(script, top) for script, top in found if top in ours} == set()


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
