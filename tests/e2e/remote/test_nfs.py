"""examples/nfs with ganesha, for real: a server of its own in namespaces, its clients, and what goes wrong with it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from etude.results.histograms import decode
from support.places import EXAMPLES
from support.real import ETUDE, alive, children, lines, processes_with

SERVER = EXAMPLES / "lib" / "nfs-server.sh"
pytestmark = [
    pytest.mark.beside,
    pytest.mark.needs_root,
    pytest.mark.needs_program("ganesha.nfsd", package="nfs-ganesha"),
    pytest.mark.needs_program("rpcbind"),
    pytest.mark.needs_program("ip", package="iproute2"),
]
needs_libnfs = pytest.mark.skipif(
    not Path("/usr/include/nfsc/libnfs.h").exists(),
    reason="no libnfs.h: install the Debian package libnfs-dev",
)
LITTLE: dict[str, str] = {"NFSFILES": "20", "NFSTRANSACTIONS": "200"}
COUNTS = ("files_created", "files_read", "files_appended", "files_deleted", "data_read", "data_written")
ONE_TRIAL = """\
ENV APLIB={examples}/nfs
TEST dying 1 MAX=1
  PRESETUP nfs-postmark.sh build
  SETUP nfs-server.sh restart
  EXEC nfs-postmark.sh
  CLEANUP nfs-server.sh stop
DONE
"""


class Place:
    """A scratch directory and names of networks that nobody else has; run() and server() see no other settings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"t{os.getpid()}"
        self.results = path / "results"
        self.begun: list[subprocess.Popen[str]] = []

    def environment(self, **changes: str) -> dict[str, str]:
        own = {"APSCRATCH": str(self.path / "scratch"), "APLIB": "", "NFSNAME": self.name, "COLUMNS": "160"}
        path = f"{Path(ETUDE).parent}:{os.environ['PATH']}"
        return os.environ | {"PATH": path, "APLOG": str(self.path / "aplog")} | own | changes

    def server(self, *words: str, check: int | None = 0, **changes: str) -> str:
        """Run nfs-server.sh; what it said, which is one line at most where it fails."""
        done = subprocess.run(
            [SERVER, *words], env=self.environment(**changes), capture_output=True, text=True, timeout=60
        )
        assert check is None or done.returncode == check, (done.returncode, done.stdout, done.stderr)
        assert done.returncode == 0 or len((done.stdout + done.stderr).splitlines()) == 1, done.stderr
        return done.stdout + done.stderr

    def start(self, script: Path, *words: str, **changes: str) -> subprocess.Popen[str]:
        """Begin a run of a script."""
        process = subprocess.Popen(
            [ETUDE, "run", "-o", str(self.results), str(script), *words],
            cwd=self.path,
            env=self.environment(**changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.begun.append(process)
        return process

    def run(self, script: Path, *words: str, **changes: str) -> str:
        """Run a script to its end; it must succeed."""
        process = self.start(script, *words, **changes)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return said

    def one_trial(self) -> Path:
        script = self.path / "one.ap"
        script.write_text(ONE_TRIAL.format(examples=EXAMPLES))
        return script

    def noted(self, kind: str) -> list[str]:
        state = self.path / "scratch" / "nfs" / "state"
        rows = [row.split("\t") for row in state.read_text().splitlines()] if state.exists() else []
        return [row[1] for row in rows if row[0] == kind]

    def ganesha(self) -> int:
        """The server's process."""
        (noted,) = self.noted("process")
        (first,) = children(int(noted.split()[0]))
        found = [pid for pid in children(first) if Path(f"/proc/{pid}/comm").read_text() == "ganesha.nfsd\n"]
        assert len(found) == 1, found
        return found[0]

    def left(self) -> list[str]:
        """Networks and processes that are there: a server's are known by what is mounted for them."""
        networks = [path.name for path in Path("/run/netns").glob(f"{self.name}-*")]
        servers = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if f"{self.path}/scratch" in Path(f"/proc/{entry}/mountinfo").read_text():
                    servers.append(entry)
        return networks + servers + [str(pid) for pid in processes_with(f"{self.path}/scratch")]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    try:
        yield made
    finally:
        for process in made.begun:
            process.terminate()
            process.wait(60)
        made.server("stop", check=None)
        left = made.left()
        for name in [path.name for path in Path("/run/netns").glob(f"{made.name}-*")]:
            subprocess.run(["ip", "netns", "del", name], check=False)
    assert left == []


def until(what: Callable[[], object], within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def clients(place: Place) -> list[int]:
    return [pid for pid in processes_with("nfs://10.78.0.1/") if place_of(pid) == place.name]


def place_of(pid: int) -> str:
    """Whose client a process is, by its network."""
    try:
        mine = os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return ""
    names = [path.name for path in Path("/run/netns").iterdir() if path.stat().st_ino == mine]
    return names[0].removesuffix("-client1") if names else ""


@needs_libnfs
@pytest.mark.serial
@pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")
def test_versions_do_the_same_work_and_the_server_is_measured_beside(place: Place) -> None:
    place.run(EXAMPLES / "nfs" / "ganesha.ap", "TRIALS=2", **LITTLE)
    counts = set()
    for test in ("mem-v3", "mem-v4", "vfs-v3", "vfs-v4"):
        rows = lines(place.results, test)
        assert len(rows) >= 2
        for row in rows:
            metrics = row["metrics"]
            counts.add(tuple(metrics[name][0] for name in COUNTS))
            assert metrics["server_cpu"][0] > 0
            operations = sum(int(metrics[name][0]) for name in COUNTS[:4])
            assert sum(window["completed"] for window in row["windows"]) == operations
            assert sum(int(decode(w["latency"]).counts.sum()) for w in row["windows"]) == operations
    assert len(counts) == 1, "the same work in all"
    assert place.left() == []


@needs_libnfs
@pytest.mark.serial
@pytest.mark.parametrize(
    ("ending", "reason"),
    [(signal.SIGKILL, "signal 9"), (signal.SIGSTOP, "libnfs: ")],
    ids=["killed", "stopped"],
)
def test_a_server_that_dies_in_mid_trial_fails_it_with_the_reason(
    place: Place, ending: signal.Signals, reason: str
) -> None:
    process = place.start(place.one_trial(), NFSTRANSACTIONS="100000000", NFSTIMEOUT="1", NFSWAIT="10")
    until(lambda: clients(place) and place.noted("process"))
    os.kill(place.ganesha(), ending)
    said, _ = process.communicate(timeout=100)
    assert process.returncode == 4, said
    cause = "'dying', trial 1: exit status 1: "
    (warning,) = [line for line in said.splitlines() if line.startswith("warning: ") and cause in line]
    assert reason in warning
    assert [row["kept"] for row in lines(place.results, "dying")] == [False]
    assert place.left() == []


@needs_libnfs
@pytest.mark.serial
def test_what_a_killed_run_left_is_ended_by_the_next(place: Place) -> None:
    process = place.start(place.one_trial(), NFSTRANSACTIONS="100000000")
    until(lambda: clients(place) and place.noted("process"))
    ganesha = place.ganesha()
    process.kill()
    process.wait()
    shutil.rmtree(place.results)
    place.run(place.one_trial(), **LITTLE)
    assert not alive(ganesha)
    assert len(lines(place.results, "dying")) == 1
    until(lambda: not clients(place))
    assert place.left() == []


def test_start_keeps_a_server_and_restart_makes_another(place: Place) -> None:
    place.server("start")
    first = place.ganesha()
    place.server("start")
    assert place.ganesha() == first
    place.server("restart")
    second = place.ganesha()
    assert second != first
    assert not alive(first)
    place.server("start", NFSVERSIONS="4")
    assert not alive(second), "other settings are another server"
    assert "NFS 4" in place.server("status", NFSVERSIONS="4")
    place.server("stop")
    place.server("stop")
    assert place.left() == []
    assert place.server("status", check=3).startswith("nothing runs")


def test_a_restart_by_another_run_is_refused_while_this_one_lives(place: Place) -> None:
    place.results.mkdir()
    place.server("start", APRESULTS=str(place.results))
    with subprocess.Popen(["flock", "--exclusive", place.results, "cat"], stdin=subprocess.PIPE) as holder:
        until(lambda: children(holder.pid))
        assert str(place.results) in place.server("restart", check=1, APRESULTS="/other")
        assert holder.stdin is not None
        holder.stdin.close()


@pytest.mark.needs_program("nfs-cp", package="libnfs-utils")
@pytest.mark.parametrize("export", ["mem", "vfs"])
def test_what_is_written_by_one_version_and_client_is_read_by_another(place: Place, export: str) -> None:
    around = {"NFSCLIENTS": "2"}
    text = place.path / "text"
    text.write_text("something\n" * 100)
    place.server("start", **around)
    place.server("client", "1", "nfs-cp", str(text), f"nfs://10.78.0.1/{export}/text?version=4", **around)
    place.server("client", "2", "nfs-cp", f"nfs://10.78.0.1/{export}/text", f"{text}.back", **around)
    assert Path(f"{text}.back").read_text() == text.read_text()


@pytest.mark.needs_program("nfs-cp", package="libnfs-utils")
def test_the_page_runs_as_it_is_printed(place: Place) -> None:
    page = (EXAMPLES.parent / "docs" / "howto" / "nfs.md").read_text()
    (text,) = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(commands).replace("/var/tmp/etude-nfs", f"{place.path}/scratch")],
        cwd=EXAMPLES.parent,
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "readme" in done.stdout
    assert place.left() == []


def test_only_the_servers_own_processes_are_seen_where_it_is(place: Place) -> None:
    place.server("start")
    inside = place.server("shell", "server", "echo /proc/[0-9]*")
    assert 3 <= len(inside.split()) <= 6
    assert float(place.server("shell", "server", f"{EXAMPLES}/lib/apremote.sh cputime ganesha.nfsd")) >= 0


def test_a_port_that_is_taken_is_said_with_its_holder(place: Place) -> None:
    place.server("start")
    place.server("client", "1", "true")
    hold = "import socket, sys; s = socket.create_server(('', 4711)); print('held', flush=True); sys.stdin.read()"
    inside = ["nsenter", f"--net=/run/netns/{place.name}-server", "--", "python3", "-c", hold]
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        said = place.server("restart", check=1, NFSPORT="4711")
        holder.stdin.close()
    assert "NFSPORT: 4711 is taken" in said
    assert str(holder.pid) in said


def test_a_network_of_somebody_else_is_left_alone(place: Place) -> None:
    subprocess.run(["ip", "netns", "add", f"{place.name}-server"], check=True)
    try:
        assert "set NFSNAME" in place.server("start", check=1)
        place.server("stop")
        assert Path(f"/run/netns/{place.name}-server").exists()
    finally:
        subprocess.run(["ip", "netns", "del", f"{place.name}-server"], check=True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"NFSVERSIONS": "5"}, "NFSVERSIONS is '5', expected 3, 4 or '3 4'"),
        ({"NFSDAEMON": "samba"}, "expected ganesha or kernel"),
        ({"NFSCLIENTS": "0"}, "expected 1 to 200"),
        ({"NFSNET": "10.78"}, "three numbers"),
        ({"NFSNET": "999.1.1"}, "no network"),
        ({"NFSROOT": "relative"}, "absolute path"),
        ({"NFSPORT": "111"}, "ganesha has ended"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_settings_are_one_line(place: Place, changes: dict[str, str], expected: str) -> None:
    assert expected in place.server("start", check=1, **changes)


def test_a_missing_package_is_named(place: Place) -> None:
    programs = place.path / "programs"
    programs.mkdir()
    for directory in ("/usr/sbin", "/usr/bin"):
        for program in Path(directory).iterdir():
            if program.name != "ganesha.nfsd" and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    # nfs-server.sh adds directories of root's, where ganesha is not.
    said = place.server("start", check=1, PATH=f"{programs}")
    assert "ganesha.nfsd is not" in said
    assert "package nfs-ganesha" in said


def test_without_root_it_says_that_root_is_needed(place: Place) -> None:
    scratch = f"/var/tmp/etude-nfs-test-{os.getpid()}"
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    done = subprocess.run(
        [*as_nobody, "bash", SERVER, "start"],
        env=place.environment(APSCRATCH=scratch),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "ermission denied" in done.stderr:
        pytest.skip("nobody may not read these examples")
    assert done.stderr.startswith("nfs-server.sh: only root ")
    assert done.stderr.count("\n") == 1
    assert not Path(scratch).exists()
