"""The packages as strangers get them: on three releases, in bare roots without a compiler and without a network."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bare_root import RELEASES, WITH_PYTHON, BareRoot, CannotMake, bare_root, cached_root, scratch

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_program("mmdebstrap"),
    pytest.mark.needs_program("cargo"),
]


MORE = {"noble": ("libstdc++6",)}
"""Libraries that NumPy's wheel loads, and that the release's smallest set of packages lacks."""


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one in dist, made there if need be: `make wheel`."""
    made = sorted(repository.glob("dist/*.whl"))
    if not made:
        dist = tmp_path_factory.mktemp("dist")
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist)]
        subprocess.run(build, cwd=repository, check=True, capture_output=True)
        made = sorted(dist.glob("*.whl"))
    return made[0]


@pytest.fixture
def memory() -> Iterator[Path]:
    with scratch() as directory:
        yield directory


def packaging(repository: Path, *words: str | Path) -> str:
    """What a script of packaging/ prints; skipped where it ends with 5: something for it is missing here."""
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=repository / "packaging", capture_output=True, text=True, check=False)
    if done.returncode == 5:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def use(root: BareRoot, etude: str, expected: str) -> None:
    """Bench, record and report, with this program."""
    compilers = root.run("sh", "-c", "command -v cc gcc cargo rustc", check=False).stdout
    assert compilers == ""
    assert expected in root.run(etude, "--version").stdout
    root.run("sh", "-c", f"cd /root && {etude} bench --trials 5 -o bench true 'sleep 0.01'")
    lines = [
        line
        for file in root.path("/root/bench").rglob("results.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert len(lines) >= 10
    root.run("sh", "-c", f"cd /root && {etude} report bench")
    assert "Bokeh" in root.path("/root/bench/report.html").read_text()
    root.run("sh", "-c", f"cd /root && {etude} record -o trace -- cat /etc/os-release")
    assert root.path("/root/trace").exists()


MARKS = {"trixie": "~deb13", "noble": "~ubuntu24.04"}
"""Parts of the names of Debian packages for other releases than Debian 12, which is built here."""


@pytest.mark.parametrize("release", RELEASES)
def test_the_wheel_is_installed_and_used(release: str, wheel: Path, repository: Path, memory: Path) -> None:
    try:
        with bare_root(release, memory, seen={"/wheel": wheel.parent}) as root:
            shown = root.run(
                "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"
            ).stdout.strip()
        wheels = Path(packaging(repository, "wheelhouse.py", shown))
    except CannotMake as reason:
        pytest.skip(str(reason))
    packages = (*WITH_PYTHON, *MORE.get(release, ()))
    with bare_root(release, memory, packages, seen={"/wheel": wheel.parent, "/wheels": wheels}) as root:
        root.run("python3", "-m", "venv", "/opt/etude")
        pip = ("/opt/etude/bin/pip", "install", "--quiet", "--no-index", "--find-links", "/wheels")
        root.run(*pip, f"/wheel/{wheel.name}")
        use(root, "/opt/etude/bin/etude", wheel.name.split("-")[1])


def test_the_debian_package_is_installed_used_and_removed(
    wheel: Path, repository: Path, memory: Path
) -> None:
    given = os.environ.get("ETUDE_DEB")
    release = next((each for each, mark in MARKS.items() if given and mark in given), "bookworm")
    words = ("deb.py", wheel.resolve(), release, "--output", memory, "--compression", "none")
    deb = Path(given or packaging(repository, *words).rpartition(": ")[0])
    packages = (*WITH_PYTHON, *MORE.get(release, ()))
    with bare_root(release, memory, packages, seen={"/deb": deb.parent}) as root:

        def files() -> set[str]:
            found = root.run(
                "find", "/usr", "/etc", "/opt", "/var/lib", "-not", "-path", "/var/lib/dpkg/*"
            ).stdout
            return set(found.splitlines())

        before = files()
        root.run("dpkg", "--install", f"/deb/{deb.name}")
        installed = files() - before
        use(root, "etude", wheel.name.split("-")[1])
        assert root.run("io-dynamic", "--help").returncode == 0
        missing = root.run("dpkg", "--verify", "etude").stdout.splitlines()
        assert [line for line in missing if "/usr/share/doc" not in line] == []  # the root takes none
        assert files() - before == installed  # Python writes nothing of its own there
        assert "/usr/share/man/man1/etude-bench.1.gz" in installed
        assert {"/usr/share/bash-completion/completions/etude", "/usr/bin/aptime"} <= installed
        root.run("dpkg", "--purge", "etude")
        assert files() == before


@pytest.mark.needs_program("buildah")
def test_the_container_is_built_and_used(wheel: Path, repository: Path, memory: Path) -> None:
    try:
        base, wheels = cached_root("trixie"), packaging(repository, "wheelhouse.py", "3.13")
    except CannotMake as reason:
        pytest.skip(str(reason))
    # A context of its own: dist may hold another wheel.
    (memory / "context/dist").mkdir(parents=True)
    shutil.copy(wheel, memory / "context/dist")
    shutil.copy(repository / "constraints.txt", memory / "context")
    environment = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}

    def buildah(*words: str | Path) -> str:
        command = ["buildah", "--root", memory / "storage", "--runroot", memory / "run", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""

    subprocess.run(["tar", "-C", base, "-cf", memory / "base.tar", "."], check=True)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, memory / "base.tar", "/")
    buildah("commit", "--quiet", "--rm", container, "localhost/base")
    arguments = ("--build-arg", "BASE=localhost/base", "--build-arg", "FROM_WHEELS=/wheels")
    file = ("-f", repository / "packaging/Containerfile", "--volume", f"{wheels}:/wheels:ro")
    buildah("bud", "--quiet", *arguments, *file, "-t", "localhost/etude", memory / "context")
    container = buildah("from", "localhost/etude")
    buildah("run", container, "etude", "bench", "--trials", "5", "-o", "/work/results", "true")
    place = Path(buildah("mount", container))
    lines = [
        line for file in place.glob("work/results/**/results.jsonl") for line in file.read_text().splitlines()
    ]
    assert len(lines) >= 5
    assert not (place / "tmp/etude").exists()
    buildah("umount", container)
    buildah("rm", "--all")
