"""The source distribution: all that building needs, and nothing that was built."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from etude.version import __version__

pytestmark = [pytest.mark.beside, pytest.mark.quick]

BUILDS = (
    *("Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml", "setup.py", "pyproject.toml"),
    *("LICENSE", "README.md", "packaging/check_wheel.py"),
)


@pytest.fixture(scope="module")
def names(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Files of the archive, below its one directory."""
    dist = tmp_path_factory.mktemp("dist")
    # setuptools writes where the sources lie, so that these are a copy: of what git has, or would take.
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    copy = tmp_path_factory.mktemp("sources")
    for name in tracked:
        if (
            name.startswith(("src/", "engine/", "examples/", *BUILDS, "MANIFEST.in"))
            and (repository / name).is_file()
        ):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((repository / name).read_bytes())
    (copy / "engine/target").mkdir()
    (copy / "engine/target/built").write_text("")
    build = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(dist), str(copy)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = dist.iterdir()
    assert made.name == f"etude-{__version__}.tar.gz"
    with tarfile.open(made) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def test_it_has_all_that_building_needs(names: set[str], repository: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "src", "engine", "examples"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    wanted = {name for name in [*tracked, *BUILDS] if (repository / name).exists()}
    assert wanted - names == set()


def test_it_has_nothing_that_was_built(names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in names if "/" in name}
    assert tops == {"src", "engine", "examples", "packaging", ".cargo"}
    assert not [
        name for name in names if "target/" in name or "__pycache__" in name or name.endswith((".pyc", ".so"))
    ]
