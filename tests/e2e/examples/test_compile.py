"""compile.sh, fetch-source.sh and generate-tree.sh; apt-get is one of the test's own."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

import pytest

from support.laboratory import Lab

pytestmark = pytest.mark.beside

SMALL = {"GENERATED_FILES": "3", "GENERATED_FUNCTIONS": "2"}
TREE = "a0d227da9d3914f9660fe7bd37abbde4204a7519c442ccb2e4628c5d10e0245a"
"""Of a tree of 120 files with 3 functions each; results are comparable only while it stays so."""
NO_APT = "echo no network >&2; exit 100"


@pytest.fixture
def bench(lab: Lab) -> Lab:
    lab.root.mkdir(parents=True)
    lab.scratch.chmod(0o700)
    lab.program("apt-get", NO_APT)
    return lab


def package(
    directory: Path, name: str, configure: str = "true", makefile: str = "all:\n\techo made >made\n"
) -> Path:
    """A package with a directory of its own in its archive."""
    source = directory / "src-1.0"
    source.mkdir()
    (source / "configure").write_text(f"#!/bin/sh\n{configure}\n")
    (source / "configure").chmod(0o755)
    (source / "Makefile").write_text(makefile)
    file = directory / name
    with tarfile.open(file, "w:gz") as archive:
        archive.add(source, "src-1.0")
    return file


def commands(lab: Lab) -> list[str]:
    return [row["command"] for row in lab.measurements()]


@pytest.mark.needs_program("make")
@pytest.mark.needs_program("cc", package="gcc")
def test_a_generated_package_is_unpacked_configured_and_compiled_in_three_measured_steps(bench: Lab) -> None:
    bench.run("compile.sh", **SMALL)
    unpack, configure, make = commands(bench)
    assert unpack.startswith(f"tar -xf {bench.scratch}/cache/generated-3-2.tar ")
    assert (configure, make) == ("./configure", "make")
    assert [row["status"] for row in bench.measurements()] == ["0", "0", "0"]
    program = bench.root / "compile-1" / "generated"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip().isdigit()
    assert bench.blocks("notice") == []


@pytest.mark.needs_program("make")
def test_another_package_is_compiled_by_variables_only(bench: Lab, tmp_path: Path) -> None:
    file = package(tmp_path, "any.tar.gz", makefile="one two:\n\techo $@ >>made\n")
    around = {
        "PACKAGE": "any",
        "PKGFILE": str(file),
        "CONFIGURE": "",
        "COMPILE": "make one",
        "INSTALL": "make two",
    }
    bench.run("compile.sh", APTHREAD="2", **around)
    assert commands(bench) == [f"tar -xf {file} --strip-components=1", "make one", "make two"]
    assert (bench.root / "compile-2" / "made").read_text() == "one\ntwo\n"


def test_the_first_step_that_fails_is_the_last(bench: Lab, tmp_path: Path) -> None:
    file = package(tmp_path, "any.tar.gz", configure="exit 3")
    done = bench.run("compile.sh", check=1, PACKAGE="any", PKGFILE=str(file))
    assert any("any: " in line and line.endswith("./configure") for line in done.stderr.splitlines())
    assert [row["status"] for row in bench.measurements()] == ["0", "3"]


def test_a_hook_can_say_how_a_package_is_compiled(bench: Lab, tmp_path: Path) -> None:
    hook = (
        'odd() { [[ $1 == odd ]] || return "$AP_DECLINED"; CMDLIST=("cp $2 here" "test -f here"); }\n'
        "ap_register compilecommand odd\n"
    )
    file = package(tmp_path, "odd.tar.gz")
    bench.run("compile.sh", PACKAGE="odd", PKGFILE=str(file), APLIB=bench.hooks("odd", hook))
    assert commands(bench) == [f"cp {file} here", "test -f here"]


def test_a_source_is_downloaded_once_with_lists_of_its_own(bench: Lab, tmp_path: Path) -> None:
    file = package(tmp_path, "zlib_1.2.orig.tar.gz")
    for name in ("zlib_1.2.orig.tar.gz.asc", "zlib_1.2-1.debian.tar.xz"):
        (tmp_path / name).write_text("")
    bench.program("apt-get", f'echo "$@" >>{tmp_path}/asked; [[ $2 != source ]] || cp {tmp_path}/zlib_* .')
    for _ in range(2):
        done = bench.run("fetch-source.sh", PACKAGE="zlib")
        assert done.stdout == f"{bench.scratch}/cache/{file.name}\n"
    update, source = (tmp_path / "asked").read_text().splitlines()
    assert " update " in update
    assert source.endswith(" --download-only zlib")
    for line in (update, source):
        assert f"Dir::State::Lists={bench.scratch}/cache/apt/lists" in line
        assert f"Dir::Etc::sourceparts={bench.scratch}/cache/apt/sources" in line
        assert "Dir::Etc::sourcelist=/dev/null" in line


def test_the_machines_own_lists_are_asked_for_sources_only(bench: Lab) -> None:
    bench.run("fetch-source.sh", PACKAGE="zlib", **SMALL)
    texts = [path.read_text() for path in (bench.scratch / "cache" / "apt" / "sources").iterdir()]
    kinds = [line.split()[-1] for text in texts for line in text.splitlines() if line.startswith("Types:")]
    words = [line.split()[0] for text in texts for line in text.splitlines() if line.startswith("deb")]
    if not kinds and not words:
        pytest.skip("this machine has no lists of packages")
    assert set(kinds) | set(words) == {"deb-src"}


def test_what_cannot_be_downloaded_is_replaced_and_this_is_said(bench: Lab) -> None:
    around = SMALL | {"PACKAGE": "zlib", "CONFIGURE": "./no-such", "COMPILE": "make no-such"}
    done = bench.run("compile.sh", **around)
    assert commands(bench)[1:] == ["./configure", "make"]
    assert "zlib could not" in done.stderr
    assert "zlib could not" in bench.blocks("notice")[0].lines[0]


def test_a_run_compiles_one_thing_under_one_name(bench: Lab, tmp_path: Path) -> None:
    around = SMALL | {"PACKAGE": "zlib"}
    first = bench.run("fetch-source.sh", **around)
    package(tmp_path, "zlib_1.2.orig.tar.gz")
    bench.program("apt-get", f"[[ $2 != source ]] || cp {tmp_path}/zlib_* .")
    assert bench.run("fetch-source.sh", **around).stdout == first.stdout
    other = bench.run("fetch-source.sh", **around, APRESULTS=str(tmp_path / "other"))
    assert other.stdout.endswith("zlib_1.2.orig.tar.gz\n")


def test_a_package_that_must_be_the_real_one_is_a_failure_offline(bench: Lab) -> None:
    done = bench.run("compile.sh", check=1, PACKAGE="zlib", PKGOFFLINE="fail")
    assert "zlib could not" in done.stderr
    assert bench.measurements() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"PKGFILE": "/nonexistent.tar"}, "no file /nonexistent.tar"),
        ({"PACKAGE": "-o Dir=/"}, "'-o Dir=/'"),
        ({"GENERATED_FILES": "0"}, "numbers from 1"),
        ({"GENERATED_FILES": "many"}, "whole numbers"),
    ],
)
def test_a_package_that_makes_no_sense_is_refused(bench: Lab, change: dict[str, str], message: str) -> None:
    done = bench.run("compile.sh", check=1, **change)
    assert message in done.stderr
    assert bench.measurements() == []


def test_a_generated_tree_is_the_same_each_time_and_on_every_machine(lab: Lab) -> None:
    digests = []
    for name in ("a", "b"):
        lab.run("generate-tree.sh", f"{lab.path}/{name}", "120", "3", TZ=f"UTC{len(digests)}", LANG="de_DE")
        files = sorted(path for path in (lab.path / name).rglob("*") if path.is_file())
        texts = [f"{path.relative_to(lab.path / name)}:{path.read_text()}" for path in files]
        digests.append(hashlib.sha256("".join(texts).encode()).hexdigest())
        assert len([path for path in files if path.suffix == ".c"]) == 121
        assert sum("ETUDE_NEEDLE" in text for text in texts) == 1
    assert digests == [TREE, TREE]


def test_the_archive_of_a_generated_package_is_the_same_everywhere(lab: Lab) -> None:
    digests = set()
    for name in ("a", "b"):
        around = SMALL | {"APSCRATCH": f"{lab.path}/{name}", "PACKAGE": "generated"}
        file = lab.run("fetch-source.sh", **around).stdout.strip()
        digests.add(hashlib.sha256(Path(file).read_bytes()).hexdigest())
        with tarfile.open(file) as archive:
            assert {(member.mtime, member.uid, member.uname) for member in archive} == {(0, 0, "")}
    assert len(digests) == 1
