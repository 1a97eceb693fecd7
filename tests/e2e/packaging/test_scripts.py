"""The scripts around a set-up: what they say when something is missing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.beside, pytest.mark.quick]

Programs = Callable[..., Path]

PYTHON = 'case "$2" in *print*) echo 3.11.2;; *"< (3"*) exit 0;; *ensurepip*) exit 0;; esac'
OLD_PYTHON = 'case "$2" in *print*) echo 3.9.2;; *"< (3"*) exit 1;; esac'
NO_VENV = 'case "$2" in *print*) echo 3.11.2;; *ensurepip*) exit 1;; esac'
CARGO = "echo cargo 1.95.0"
USUAL = ("sh", "sed", "sort", "head")


def run(repository: Path, path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "CC"} | {"PATH": str(path)}
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ({"cc": "", "cargo": CARGO}, "apt-get install python3 python3-venv"),
        ({"python3": OLD_PYTHON, "cc": "", "cargo": CARGO}, "PYTHON=python3.11"),
        ({"python3": NO_VENV, "cc": "", "cargo": CARGO}, "apt-get install python3-venv"),
        ({"python3": PYTHON, "cargo": CARGO}, "apt-get install gcc libc6-dev"),
        ({"python3": PYTHON, "cc": "exit 1", "cargo": CARGO}, "apt-get install gcc libc6-dev"),
        ({"python3": PYTHON, "cc": ""}, "curl -sSf https://sh.rustup.rs"),
        (
            {"python3": PYTHON, "cc": "", "apt_cache": "echo Package: rustup"},
            "apt-get install rustup; then: rustup toolchain",
        ),
        ({"python3": PYTHON, "cc": "", "rustup": "", "cargo": "exit 1"}, "run: rustup toolchain install"),
        ({"python3": PYTHON, "cc": "", "cargo": "echo cargo 1.65.0"}, "Rust 1.95 (cargo is 1.65)"),
        (
            {},
            "apt-get update && apt-get install python3 python3-venv gcc libc6-dev curl ca-certificates; then: curl",
        ),
        ({"python3": PYTHON, "cc": "", "curl": ""}, "missing: Rust 1.95; run: curl -sSf"),
    ],
    ids=["no Python", "old Python", "no venv", "no compiler", "no C library", "no cargo", "rustup in the distribution",
         "no toolchain", "old cargo", "all at once", "Rust alone"],
)  # fmt: skip
def test_what_is_missing_is_said_in_one_line_with_what_to_install(
    repository: Path, programs: Programs, made: dict[str, str], named: str
) -> None:
    path = programs(*USUAL, **({"apt_get": "exit 9", "apt_cache": "", "id": "echo 1000"} | made))
    done = run(repository, path, "packaging/check-tools.sh", "python3", "cargo")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert named in done.stderr


@pytest.mark.parametrize(("manager", "named"), [
    ("dnf", "dnf install python3 gcc glibc-devel rustup; then"),
    ("pacman", "pacman -S python gcc rustup; then"),
    (None, "Rust 1.95; run: curl"),
], ids=["dnf", "pacman", "unknown"])  # fmt: skip
def test_another_distribution_gets_its_own_commands(
    repository: Path, programs: Programs, manager: str | None, named: str
) -> None:
    made = {manager: "exit 9"} if manager else {}
    done = run(repository, programs(*USUAL, **made), "packaging/check-tools.sh", "python3", "cargo")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert named in done.stderr


def test_root_has_the_packages_of_a_build_installed_and_is_told_of_rust_alone(
    repository: Path, programs: Programs, tmp_path: Path
) -> None:
    asked, place = tmp_path / "asked", tmp_path / "path"
    install = (
        f'echo "$@" >>{asked}; case "$*" in *install*) '
        f"ln -s /bin/true {place}/cc; ln -s /bin/true {place}/curl;; esac"
    )
    path = programs(*USUAL, "ln", python3=PYTHON, id="echo 0", apt_get=install, apt_cache="")
    done = run(repository, path, "packaging/check-tools.sh", "python3", "cargo")
    assert done.returncode == 1
    assert "missing: Rust 1.95; run: curl " in done.stderr
    assert (
        asked.read_text()
        .splitlines()[1]
        .endswith(" --no-install-recommends gcc libc6-dev curl ca-certificates")
    )


def test_a_rustup_that_apt_knows_after_its_update_is_what_root_gets(
    repository: Path, programs: Programs, tmp_path: Path
) -> None:
    asked, place, known = tmp_path / "asked", tmp_path / "path", tmp_path / "known"
    apt = (
        f'echo "$@" >>{asked}; case "$*" in *update*) echo >{known};; *install*) ln -s /bin/true {place}/cc; '
        f"ln -s /bin/true {place}/rustup;; esac"
    )
    path = programs(
        *USUAL, "ln", python3=PYTHON, id="echo 0", apt_get=apt, apt_cache=f"[ ! -e {known} ] || echo Known"
    )
    done = run(repository, path, "packaging/check-tools.sh", "python3", "cargo")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "missing: Rust 1.95; run: rustup toolchain install" in done.stderr
    assert asked.read_text().splitlines()[1].endswith(" gcc libc6-dev rustup")


def test_with_everything_there_nothing_is_said(repository: Path, programs: Programs) -> None:
    path = programs(*USUAL, python3=PYTHON, cc="", cargo=CARGO)
    done = run(repository, path, "packaging/check-tools.sh", "python3", "cargo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_apt_missing_packages_are_listed_with_what_they_are_for(
    repository: Path, programs: Programs
) -> None:
    path = programs("bash", "dirname", "grep", "cat", dpkg_query="exit 1")
    done = run(repository, path, "bash", "packaging/install-debian-packages.sh")
    assert done.returncode == 0
    assert "package hyperfine: tests: " in done.stdout
    assert re.search(r"apt-get install (--\S+ )*gcc", done.stdout)


def test_when_all_are_installed_apt_is_not_asked(repository: Path, programs: Programs) -> None:
    path = programs("bash", "dirname", "grep", dpkg_query="echo installed", apt_get="exit 9")
    done = run(repository, path, "bash", "packaging/install-debian-packages.sh")
    assert done.returncode == 0
    assert done.stdout.startswith("all ")


@pytest.mark.needs_root
def test_root_has_missing_packages_installed_without_being_asked(
    repository: Path, programs: Programs, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    path = programs(
        "bash", "dirname", "grep", "rm", "chmod", dpkg_query="exit 1", apt_get=f'echo "$@" >>{asked}'
    )
    done = run(repository, path, "bash", "packaging/install-debian-packages.sh", str(tmp_path / "policy"))
    assert done.returncode == 0
    update, install = asked.read_text().splitlines()
    assert update.endswith("update")
    assert "-y --no-install-recommends gcc " in install


@pytest.mark.needs_root
@pytest.mark.parametrize("of_the_user", [None, "exit 0"])
def test_no_service_of_an_installed_package_starts_unless_the_user_has_a_policy_that_lets_it(
    repository: Path, programs: Programs, tmp_path: Path, of_the_user: str | None
) -> None:
    policy, asked = tmp_path / "policy-rc.d", tmp_path / "asked"
    if of_the_user:
        policy.write_text(f"#!/bin/sh\n{of_the_user}\n")
        policy.chmod(0o755)
    install = f'case "$*" in *install*) {policy}; echo $? >>{asked};; esac'
    path = programs("bash", "dirname", "grep", "rm", "chmod", dpkg_query="exit 1", apt_get=install)
    run(repository, path, "bash", "packaging/install-debian-packages.sh", str(policy))
    assert asked.read_text().splitlines() == ["0" if of_the_user else "101"]
    assert policy.exists() == bool(of_the_user)


@pytest.mark.needs_root
def test_a_package_that_the_distribution_lacks_does_not_keep_the_others_away(
    repository: Path, programs: Programs, tmp_path: Path
) -> None:
    have = tmp_path / "have"
    have.mkdir()
    install = f"""case "$*" in *gcc-11*) exit 100;; *update) exit 0;; esac
for name; do case $name in -*|install) ;; *) : >{have}/$name;; esac; done"""
    known = f"for name; do :; done; [ -e {have}/$name ] && echo installed"
    path = programs("bash", "dirname", "grep", "rm", "chmod", dpkg_query=known, apt_get=install)
    done = run(repository, path, "bash", "packaging/install-debian-packages.sh", str(tmp_path / "policy"))
    assert done.returncode == 0
    assert (have / "gcc").exists()
    assert (have / "slurm-client").exists()
    assert re.findall(r"^missing package (\S+):", done.stdout, re.MULTILINE) == ["gcc-11"]


@pytest.mark.parametrize("suite", ["test", "test-more", "golden"])
def test_make_that_is_to_say_what_it_would_do_runs_no_tests(
    repository: Path, tmp_path: Path, suite: str
) -> None:
    (tmp_path / "Makefile").symlink_to(repository / "Makefile")
    (tmp_path / "packaging").symlink_to(repository / "packaging")
    (tmp_path / ".venv").mkdir()
    for source in ("pyproject.toml", "constraints.txt", "Cargo.toml", "rust-toolchain.toml", "setup.py"):
        (tmp_path / source).touch()
    for stamp in ("requirements", "setup"):
        (tmp_path / f".venv/{stamp}.stamp").touch()
    command = ["make", "-n", suite, "BIN=/nonexistent"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("place", "called"), [(".", ".ci/run"), (".ci", "./run"), ("..", "clone/.ci/run")])
def test_all_checks_are_run_from_any_directory(
    repository: Path, tmp_path: Path, place: str, called: str
) -> None:
    clone = tmp_path / "clone"
    for directory in (".ci", "packaging"):
        (clone / directory).mkdir(parents=True)
    shutil.copy(repository / ".ci/run", clone / ".ci/run")
    shutil.copy(repository / "packaging/part.sh", clone / "packaging/part.sh")
    (clone / "Makefile").write_text("setup lint test test-more test-packages: ; @echo made $@\n")
    done = subprocess.run([called], cwd=clone / place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "made test-more" in done.stdout


FLAGS = {"RUSTFLAGS": "-Cdebuginfo=0", "CARGO_ENCODED_RUSTFLAGS": "-Cdebuginfo=0"}


def test_what_make_starts_has_no_flags_of_rust_and_no_other_place_of_modules(repository: Path) -> None:
    command = ["make", "--no-print-directory", "--eval=show: ; @env", "show"]
    environment = os.environ | FLAGS | {"PYTHONPATH": "/another/clone/src"}
    done = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=True
    )
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names & {*FLAGS, "PYTHONPATH"} == set()


def test_an_installation_by_pip_has_no_flags_of_rust(repository: Path) -> None:
    text = """
import os, setuptools
setuptools.setup = lambda **_: print(*os.environ)
exec(open("setup.py", encoding="utf-8").read())
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=repository,
        env=os.environ | FLAGS,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) & set(FLAGS) == set()


PYTHON_STUB = """#!/bin/sh
echo "RUNS $*"
case "$*" in
*ensurepip*|*"import pip"*) exit 0 ;;
*" venv "*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
"""


def test_each_step_of_a_first_set_up_is_named_before_it_begins(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to(repository / "Makefile")
    for name in ("pyproject.toml", "constraints.txt", "Cargo.toml", "rust-toolchain.toml", "setup.py"):
        (tmp_path / name).touch()
    (tmp_path / "packaging").mkdir()
    for path, text in {"packaging/check-tools.sh": "#!/bin/sh\n", "python": PYTHON_STUB}.items():
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    command = ["make", "setup", f"PYTHON={tmp_path / 'python'}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    steps = [n for n, line in enumerate(lines) if line.startswith("RUNS") and re.search("venv|install", line)]
    assert len(steps) == 3
    assert [lines[n] for n in steps if lines[n - 1].startswith("RUNS")] == []
    again = subprocess.run(["make", "setup"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "RUNS" not in again.stdout


def test_in_a_clone_that_was_moved_the_virtual_environment_is_made_anew(
    repository: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "a clone"
    (clone / ".venv").mkdir(parents=True)
    (clone / "Makefile").symlink_to(repository / "Makefile")
    stamp = clone / ".venv/requirements.stamp"
    for name in ("pyproject.toml", "constraints.txt", ".venv/requirements.stamp"):
        (clone / name).touch()
    question = ["make", "-q", ".venv/requirements.stamp"]
    for place, fresh in ((None, True), (clone, True), (tmp_path / "another", False)):
        if place:
            (clone / ".venv/place").write_text(f"{place}\n")
        stamp.touch()
        assert (subprocess.run(question, cwd=clone, capture_output=True).returncode == 0) is fresh


def test_for_a_python_that_was_upgraded_the_virtual_environment_is_made_anew(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "Makefile").symlink_to(repository / "Makefile")
    for name in ("pyproject.toml", "constraints.txt", "python3.11", "python3.12", ".venv/requirements.stamp"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/lib/python3.11").mkdir(parents=True)
    question = ["make", "-q", ".venv/requirements.stamp"]
    for target, fresh in (("python3.11", True), ("python3.12", False)):
        python = tmp_path / ".venv/bin/python"
        python.unlink(missing_ok=True)
        python.symlink_to(tmp_path / target)
        assert (subprocess.run(question, cwd=tmp_path, capture_output=True).returncode == 0) is fresh


def test_every_debian_package_says_what_it_is_for(repository: Path) -> None:
    lines = (repository / "packaging/debian-packages.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        name, _, why = line.partition("#")
        assert why.strip(), line
        assert name.count(" ") == len(name) - len(name.strip()), line


def test_a_part_passes_on_how_its_command_ended(repository: Path) -> None:
    command = ["packaging/part.sh", "a name", "3600", "sh", "-c", "exit 3"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 3
    assert re.search(r"a name: \d+ s of 3600 s", done.stdout)
    assert "WARNING" not in done.stdout


def test_a_part_that_takes_more_than_its_share_is_warned_about(repository: Path) -> None:
    command = ["packaging/part.sh", "a name", "-1", "true"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0
    assert "== WARNING: a name took" in done.stdout


@pytest.mark.parametrize(
    ("cargo", "source", "status", "runs"),
    [
        ("exit 1", True, 0, 0),
        ("exit 0", False, 0, 0),
        ('case "$*" in *--version*) ;; *) echo "ran $*";; esac', True, 0, 2),
        ('case "$*" in *--version*) ;; *) echo "ran $*"; exit 7;; esac', True, 7, 1),
    ],
    ids=["no Miri", "no library's source", "all", "undefined behaviour"],
)
def test_miri_runs_where_it_is_installed_and_what_is_not_run_is_named(
    repository: Path, programs: Programs, tmp_path: Path, cargo: str, source: bool, status: int, runs: int
) -> None:
    library = tmp_path / "lib/rustlib/src/rust/library"
    library.mkdir(parents=True)
    if source:
        (library / "Cargo.toml").touch()
    path = programs("sh", cargo=cargo, rustc=f"echo {tmp_path}")
    done = run(repository, path, "packaging/check-memory.sh", "cargo")
    assert (done.returncode, done.stdout.count("+nightly miri")) == (status, runs)
    assert done.stdout.startswith("NOT RUN") == (runs == 0)
