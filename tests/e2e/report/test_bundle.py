"""`etude bundle` as a user meets it: packed, verified, read, repeated; and the examples of docs/howto/bundle.md."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.places import ROOT
from support.real import ETUDE, called, etude, experiment, one_line

pytestmark = pytest.mark.beside

DOCUMENT = (ROOT / "docs" / "howto" / "bundle.md").read_text()
COMMANDS = re.findall(r"^\$ (.*)$", DOCUMENT, re.M)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a bench, `b`, and of a script with includes, `s`."""
    here = tmp_path_factory.mktemp("made")
    called("bench", "--trials", "6", "sleep 0.01", "sleep 0.02", "-o", "b", cwd=here)
    for name, text in {
        "work/main.ap": "INCLUDE sub/near.inc\nINCLUDE common/far.inc\nTEST t 3\nEXEC sh -c 'echo %A%%B%'\nDONE\n",
        "work/sub/near.inc": "VAR A=near\n",
        "elsewhere/common/far.inc": "VAR B=far\n",
    }.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    called("run", "-I", "elsewhere", "work/main.ap", "-o", "s", cwd=here)
    return here


@pytest.fixture
def here(made: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    shutil.copytree(made, tmp_path / "x")
    return tmp_path / "x"


def names(path: Path) -> set[str]:
    with tarfile.open(path) as tar:
        return {name.partition("/")[2] for name in tar.getnames()}


def test_every_command_of_the_document_runs_as_it_is_printed(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 10
    for name, text in re.findall(r"^```ap (\S+)\n(.*?)^```", DOCUMENT, re.M | re.S):
        (tmp_path / name).write_text(text)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line in COMMANDS:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0 or (done.returncode == 1 and "--again" in line), (line, done.stderr)


def test_a_bundle_holds_what_the_document_says(here: Path) -> None:
    (here / "s" / "notes.txt").write_text("private")
    (here / "s" / "state.json").write_text("{}")
    (here / "s" / "t" / "logs" / "9999-0.log").symlink_to("/etc/passwd")
    done = called("bundle", "s", "b", cwd=here)
    for left_out in ("s/notes.txt", "s/state.json", "s/t/logs/9999-0.log"):
        assert f"Not packed: {left_out}" in done.stdout
    assert f"host name {socket.gethostname()}" in done.stdout
    found = names(here / "s-bundle.tar.gz")
    assert found >= {"README.txt", "SHA256SUMS", "bundle.json", "versions.json"}
    assert found >= {"results/s/experiment.json", "results/s/t/results.jsonl", "results/s/t.res"}
    assert found >= {"results/s/t/logs/0001-0.log", "results/b/sleep-0.01/results.jsonl"}
    assert found >= {"machine/b/before.json", "verdicts/b.json", "verdicts/s.txt"}
    assert {name for name in found if name.startswith("scripts/")} == {
        "scripts/s/main.ap",
        "scripts/s/sub/near.inc",
        "scripts/s/library/common/far.inc",
    }
    assert not found & {"results/s/notes.txt", "results/s/state.json", "results/s/t/logs/9999-0.log"}
    called("bundle", "s", "--no-logs", "-o", "quiet.tar", cwd=here)
    assert not any("logs" in name for name in names(here / "quiet.tar"))


def test_the_same_results_are_the_same_bytes_wherever_they_lie(here: Path, tmp_path: Path) -> None:
    called("bundle", "s", "b", "-o", "1.tar.gz", cwd=here)
    (tmp_path / "other").mkdir()
    for name in ("s", "b"):
        shutil.copytree(here / name, tmp_path / "other" / name, copy_function=shutil.copy)
    called("bundle", "s/", "./b", "-o", "2.tar.gz", cwd=tmp_path / "other")
    assert (here / "1.tar.gz").read_bytes() == (tmp_path / "other" / "2.tar.gz").read_bytes()


@pytest.mark.needs_program("sha256sum", package="coreutils")
def test_it_is_verified_without_etude_and_with_it(here: Path) -> None:
    called("bundle", "s", "b", cwd=here)
    subprocess.run(["tar", "xzf", "s-bundle.tar.gz"], cwd=here, check=True)
    place = here / "s-bundle"
    subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=place, check=True, capture_output=True)
    called("bundle", "--verify", "s-bundle", cwd=here, check=0)
    (place / "results" / "b" / "experiment.json").write_text("{}")
    (place / "added").write_text("")
    (place / "README.txt").unlink()
    done = called("bundle", "--verify", "s-bundle", cwd=here, check=1)
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == [
        *("README.txt", "added", "results/b/experiment.json", "s-bundle")
    ]
    assert "(3 found)" in done.stdout.splitlines()[-1]


def test_a_script_runs_from_what_was_unpacked(here: Path) -> None:
    called("bundle", "s", "-o", "out", cwd=here)
    readme = (here / "out" / "README.txt").read_text()
    (line,) = re.findall(r"The script itself: etude (.*)", readme)
    shutil.rmtree(here / "work")
    shutil.rmtree(here / "elsewhere")
    assert called(*line.split(), "--list", cwd=here / "out").stdout == "t\n"


def test_a_bundle_is_read_and_repeated(here: Path) -> None:
    called("bundle", "b", "-o", "b.tar.zst", cwd=here)
    called("bundle", "s", "-o", "out", cwd=here)
    shutil.rmtree(here / "b")
    shutil.rmtree(here / "s")
    shutil.rmtree(here / "work")
    document = json.loads(called("stats", "--json", "b.tar.zst", cwd=here).stdout)
    assert document["results"] == "b.tar.zst"
    assert [test["test"] for test in document["tests"]] == ["sleep 0.01", "sleep 0.02"]
    temporary = here / "temporary"
    temporary.mkdir()
    done = etude(
        "run",
        "--again",
        "b.tar.zst",
        "-o",
        "now",
        cwd=here,
        check=None,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert re.search(r"^Again: b.tar.zst$", done.stdout, re.M)
    assert re.search(r"^ sleep 0.02 / sleep 0.01 .* (reproduced|undecided)$", done.stdout, re.M)
    assert experiment(here / "now")["verb"] == "bench"
    assert not list(temporary.iterdir()), "what was unpacked goes away"
    called("run", "--again", "out", "-o", "then", cwd=here, check=None)
    assert experiment(here / "then")["plan"]["kind"] == "script"


def test_of_several_results_one_is_named(here: Path) -> None:
    called("bundle", "s", "b", "-o", "both.tar", cwd=here)
    done = called("run", "--again", "both.tar", cwd=here, check=2)
    assert re.search(r"\b2 results\b.* results/s, results/b", one_line(done.stderr))
    told = called("stats", "both.tar", cwd=here).stdout
    assert set(re.findall(r"^both\.tar: (\w)(?::|$)", told, re.MULTILINE)) == {"s", "b"}


def test_nothing_of_the_host_is_left_in_an_anonymous_bundle(made: Path, here: Path) -> None:
    host, home = "petrels-laptop", "/home/petrel"
    for file in (here / "s").rglob("*"):  # sysctls are no hosts, also where the host is called vm
        if file.is_file():
            text = file.read_text().replace(str(made), f"{home}/project")
            file.write_text(re.sub(rf"\b{re.escape(socket.gethostname())}\b(?!\.[a-z])", host, text))
    (here / "s" / "t" / "logs" / "0001-0.log").write_text(f"petrel@{host}:{home}/x\n\x1b[1m{host}\n")
    done = called("bundle", "s", "-o", "open", cwd=here)
    assert f"host name {host}, home {home}; --anonymous replaces them" in done.stdout
    called("bundle", "s", "-o", "hidden", "--anonymous", cwd=here)
    assert called("bundle", "--verify", "hidden", cwd=here)
    for file in (here / "hidden").rglob("*"):
        if file.is_file():
            assert host not in file.read_text(), file
            assert home not in file.read_text(), file
    assert (
        json.loads((here / "hidden" / "machine" / "s" / "before.json").read_text())["system"]["hostname"]
        == "host-1"
    )
    assert (here / "hidden" / "scripts" / "s" / "main.ap").is_file()
    both = [json.loads(called("stats", "--json", f"{name}", cwd=here).stdout) for name in ("open", "hidden")]
    assert both[0]["tests"] == both[1]["tests"]
    called("run", "--again", "hidden", "-o", "now", cwd=here, check=None)
    assert experiment(here / "now")["sittings"][-1]["how_ended"] == "complete"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "nothing to pack"),
        (["none"], 3, "none: cannot be read"),
        (["work"], 3, "no results here"),
        (["b", "-o", "b"], 3, "b: exists already"),
        (["b", "-o", "x.zip"], 2, ".tar.gz"),
        (["b", "-o", "none/x.tar.gz"], 5, "none/x.tar.gz: cannot be written: No such file"),
        (["--verify", "b"], 3, "no SHA256SUMS"),
        (["--verify", "work/main.ap"], 3, "is no bundle"),
        (["--verify", "none.tar.gz"], 3, "none.tar.gz: cannot be read"),
        (["--verify", "b", "s"], 2, "--verify packs nothing"),
    ],
)
def test_what_cannot_be_packed_is_one_line(here: Path, arguments: list[str], code: int, message: str) -> None:
    before = sorted(here.rglob("*"))
    done = called("bundle", *arguments, cwd=here, check=code)
    assert message in one_line(done.stderr)
    assert sorted(here.rglob("*")) == before


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few pages."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.needs_root
@pytest.mark.serial
@pytest.mark.parametrize("name", ["x.tar", "x"])
def test_a_full_disk_is_one_line_and_leaves_no_half_bundle(here: Path, small: Path, name: str) -> None:
    with open(here / "b" / "sleep-0.01" / "hooks.log", "wb") as file:
        file.write(os.urandom(100_000))
    done = called("bundle", "b", "-o", str(small / name), cwd=here, check=5)
    assert os.strerror(errno.ENOSPC) in one_line(done.stderr)
    assert not list(small.iterdir())


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_read_only_target_and_no_room_to_unpack_are_one_line(here: Path, small: Path) -> None:
    with open(here / "b" / "sleep-0.01" / "hooks.log", "wb") as file:
        file.write(os.urandom(100_000))
    called("bundle", "b", "-o", "b.tar", cwd=here)
    done = etude("stats", "b.tar", cwd=here, check=5, env=os.environ | {"TMPDIR": str(small)})
    assert re.search(r"b\.tar: .*\broom\b.* TMPDIR ", one_line(done.stderr))
    assert not list(small.iterdir())
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    done = called("bundle", "b", "-o", str(small / "x.tar.gz"), cwd=here, check=5)
    assert os.strerror(errno.EROFS) in one_line(done.stderr)


def test_an_interrupted_bundle_is_not_there(here: Path) -> None:
    import signal
    import time

    with open(here / "b" / "sleep-0.01" / "hooks.log", "wb") as file:
        for _ in range(80):
            file.write(os.urandom(1_000_000))
    process = subprocess.Popen(
        [ETUDE, "bundle", "b", "-o", "x.tar.gz"],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not list(here.glob(".x.tar.gz.*.new")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert one_line(complaint) == "etude: ended by SIGINT"
    assert not list(here.glob("*x.tar.gz*"))
    assert not list(here.glob(".x.tar.gz*"))
