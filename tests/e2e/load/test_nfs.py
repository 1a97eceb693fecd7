"""`etude load --nfs` with ganesha, for real: what it makes there, what it offers, and what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.program import engine_path
from support.places import EXAMPLES
from support.real import alive, children

SERVER = EXAMPLES / "lib" / "nfs-server.sh"
NET = "10.79.98"
pytestmark = [
    pytest.mark.serial,
    pytest.mark.needs_root,
    pytest.mark.needs_program("ganesha.nfsd", package="nfs-ganesha"),
    pytest.mark.needs_program("rpcbind"),
    pytest.mark.needs_program("ip", package="iproute2"),
]
PRESETS = {"specsfs97": 2, "sfs2008": 2, "web": 50, "db_tp": 20, "mail": 50, "postmark": 100}
"""With the rate, for which the file set is made: small ones."""


class Place:
    """A server in a network of its own, and its exported directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path / "scratch" / "nfs" / "root"
        own = {"APSCRATCH": str(path / "scratch"), "NFSNAME": f"l{os.getpid()}", "NFSNET": NET}
        self.environment = os.environ | own | {"APRESULTS": ""}

    def server(self, *words: str) -> None:
        subprocess.run([SERVER, *words], env=self.environment, check=True, timeout=60)

    def begin(self, *words: str, export: str = "vfs") -> subprocess.Popen[str]:
        url = f"nfs://{NET}.1/{export}"
        command = [str(SERVER), "client", "1", engine_path(), "load", "--nfs", url, *words]
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def load(self, *words: str) -> dict[str, Any]:
        """The last line of a run, which must end well; without one, nothing."""
        with self.begin(*words) as process:
            said, wrong = process.communicate(timeout=120)
        assert process.returncode == 0, wrong
        return json.loads(said.splitlines()[-1])["summary"] if said else {}

    def ganesha(self) -> int:
        state = (self.path / "scratch" / "nfs" / "state").read_text().splitlines()
        (process,) = [line.split("\t")[1] for line in state if line.startswith("process\t")]
        (first,) = children(int(process.split()[0]))
        (found,) = [
            pid for pid in children(first) if Path(f"/proc/{pid}/comm").read_text() == "ganesha.nfsd\n"
        ]
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("load-nfs"))
    try:
        made.server("start")
        yield made
    finally:
        made.server("stop")


def there(directory: Path) -> dict[str, tuple[str, int | str]]:
    """All that is in a directory: what it is, and its size, or where it leads."""
    found: dict[str, tuple[str, int | str]] = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("directory", 0)
        else:
            found[name] = ("file", path.stat().st_size)
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_runs_without_a_failure(place: Place, preset: str) -> None:
    rate = str(PRESETS[preset])
    summary = place.load("--preset", preset, "--rate", "100", "--sized-for", rate, "--seconds", "2")
    assert summary["failed"] == summary["abandoned"] == 0, summary["failures"]
    assert summary["completed"] == summary["offered"] > 100


def test_what_was_made_is_put_right_again_and_nothing_else_is_touched(place: Place) -> None:
    words = ("--preset", "web", "--files-seed", "5", "--sized-for", "1", "--set", "files=60")
    place.load(*words, "--set", "links=0.2", "--populate")
    directory = place.root / "etude-load-web-5"
    whole = there(directory)
    assert sum(kind == "file" for kind, _ in whole.values()) == 60
    assert sum(kind == "link" for kind, _ in whole.values()) == 12
    contents = b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    assert len(set(contents)) == 256, "what is written is not all alike"
    others = place.root / "others"
    others.mkdir()
    (others / "file").write_text("the user's")
    files = [name for name, (kind, _) in whole.items() if kind == "file"]
    links = [name for name, (kind, _) in whole.items() if kind == "link"]
    (directory / files[0]).unlink()
    os.truncate(directory / files[1], 1_000_000)
    os.truncate(directory / files[2], 0)
    (directory / links[0]).unlink()
    (directory / links[0]).symlink_to("elsewhere")
    (directory / "deep" / "deeper").mkdir(parents=True)
    (directory / "deep" / "deeper" / "file").write_text("too much")
    place.server("restart")  # it keeps sizes for a minute, and this was done behind its back
    place.load(*words, "--set", "links=0.2", "--populate")
    assert there(directory) == whole
    assert (others / "file").read_text() == "the user's"


def test_a_file_set_larger_than_the_space_is_refused_in_one_line(place: Place) -> None:
    big = ("--set", "sizes=fixed:4000000", "--set", "files=1000000")
    with place.begin("--preset", "web", *big, "--rate", "1", "--seconds", "1") as process:
        said, wrong = process.communicate(timeout=120)
    assert (process.returncode, said, len(wrong.splitlines())) == (5, "", 1), wrong
    assert "MiB are free" in wrong


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"nfs://{NET}.1/nothing", "MNT3ERR_"),
        (f"nfs://{NET}.1/vfs?mountport=1", "no connection"),
        (f"nfs://{NET}.1:1/vfs", f"{NET}.1:1"),
    ],
    ids=["export", "mount", "port"],
)
def test_a_server_that_is_not_there_is_said_in_one_line(place: Place, url: str, expected: str) -> None:
    command = [str(SERVER), "client", "1", engine_path(), "load", "--nfs", url, "--preset", "web"]
    done = subprocess.run(
        [*command, "--rate", "1", "--seconds", "1"],
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (5, "", 1), done.stderr
    assert expected in done.stderr


def test_a_server_killed_in_mid_run_is_counted_and_the_run_ends(place: Place) -> None:
    words = ("--preset", "web", "--set", "files=60", "--sized-for", "1", "--rate", "500", "--seconds", "3")
    with place.begin(*words, "--timeout", "1") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        ganesha = place.ganesha()
        os.kill(ganesha, signal.SIGKILL)
        *_, last = process.stdout.readlines()
        assert process.wait(60) == 0
    try:
        assert not alive(ganesha)
        summary = json.loads(last)["summary"]
        assert first["completed"] > 0
        assert summary["failures"]["connect"] > 0
        assert summary["offered"] == summary["completed"] + summary["failed"] + summary["abandoned"]
    finally:
        place.server("restart")
