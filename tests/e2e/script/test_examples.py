"""The examples run as they are; here with little work in each trial, and some with fewer trials."""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.places import EXAMPLES
from support.real import ETUDE, called, experiment, lines

FIGURE_1 = """\
INCLUDE common.inc
FOREACH FS ext2 ext3 reiserfs
  FOR THREADCOUNT=1 TO 32 FACTOR 2
    THREADS=%THREADCOUNT%
    TEST %FS%:%THREADS% 10 1 getstats \\
  --predicate '("$delta" < 0.05 * $mean) \\
  || ($count > 30)'
      SETUP fs-setup.sh %FS%
      EXEC postmark.sh
      CLEANUP fs-cleanup.sh %FS%
    DONE
  DONE
DONE
INCLUDE ok.inc
"""
"""As the paper prints it."""

LITTLE = {
    "FSIMAGESIZE": "400M",
    "POSTMARK_NUMBER": "20",
    "POSTMARK_TRANSACTIONS": "20",
    "GENERATED_FILES": "2",
    "GENERATED_FUNCTIONS": "2",
    "READDIR_FILES": "100",
}
PROGRAMS = [
    pytest.mark.needs_program("postmark"),
    pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs"),
    pytest.mark.needs_program("mkfs.xfs", package="xfsprogs"),
    pytest.mark.needs_program("mkfs.btrfs", package="btrfs-progs"),
    pytest.mark.needs_program("make"),
]


class Place:
    """A copy of the examples, and who runs them: root on loop devices, or a user in a plain directory."""

    def __init__(self, path: Path, user: int | None) -> None:
        self.path = path
        self.user = user

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def results(self) -> Path:
        return self.path / "results"

    def run(self, example: str, *words: str) -> str:
        """Run one from the directory above the examples; returns what it printed, errors and all."""
        as_user = [] if self.user is None else ["setpriv", f"--reuid={self.user}", "--clear-groups", "--"]
        done = subprocess.run(
            [*as_user, ETUDE, "run", "-o", str(self.results), f"examples/{example}", *words],
            cwd=self.path,
            env=os.environ | LITTLE | {"APSCRATCH": str(self.scratch), "APLIB": "", "COLUMNS": "160"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def quick(self, example: str, *pairs: tuple[str, str]) -> None:
        """Ask for fewer trials than the example does."""
        file = self.path / "examples" / example
        text = file.read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)

    def left(self) -> list[str]:
        """Mounts, loop devices and images that should be gone."""
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        images = [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
        files = map(str, [*self.scratch.glob("*.img"), *self.scratch.glob("mnt*")])
        return [name for name in (*mounts, *images, *files) if name.startswith(f"{self.path}/")]

    def wipe(self) -> None:
        """Remove mounts and loop devices, whatever the scripts did."""
        for mount in [name for name in self.left() if name.startswith(f"{self.scratch}/mnt")][::-1]:
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
        for file in Path("/sys/block").glob("loop*/loop/backing_file"):
            if file.read_text().startswith(f"{self.path}/"):
                subprocess.run(["losetup", "--detach", f"/dev/{file.parents[1].name}"], check=False)

    def blocks(self, test: str, name: str) -> list[str]:
        """The lines of all blocks of one name in one test."""
        file = self.results / test / "blocks.jsonl"
        blocks = [json.loads(line) for line in file.read_text().splitlines()]
        return [line for block in blocks if block["name"] == name for line in block["lines"]]


def with_user(user: str) -> int | None:
    """Who `user` is here: None for whoever runs the tests."""
    if user == "root" and os.geteuid() != 0:
        pytest.skip("only root may do this")
    if user == "root" or os.geteuid() != 0:
        return None
    as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--", ETUDE, "--version"]
    if subprocess.run(as_nobody, capture_output=True, check=False).returncode != 0:
        pytest.skip("nobody may not run this etude")
    return 65534


@pytest.fixture(params=[pytest.param("root", marks=pytest.mark.serial), "a user"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    user = with_user(request.param)
    path = Path(f"/var/tmp/etude-examples-{os.getpid()}-{time.monotonic_ns()}")
    path.mkdir()
    made = Place(path, user)
    try:
        shutil.copytree(EXAMPLES, path / "examples")
        if user is not None:
            os.chown(path, user, user)
        yield made
        left = made.left()
        made.wipe()
        assert left == []
    finally:
        shutil.rmtree(path, ignore_errors=True)


pytestmark = pytest.mark.beside
"""What root runs mounts, and is `serial`."""


def needs_programs(test: Callable[..., None]) -> Callable[..., None]:
    """Skipped, visibly, where one of the programs that the examples use is missing."""
    for mark in PROGRAMS:
        test = mark(test)
    return test


def test_figure_1_is_the_papers_text_but_for_file_systems_threads_and_a_comment() -> None:
    ours = FIGURE_1.replace("ext2 ext3 reiserfs", "ext2 ext4 xfs btrfs").replace("1 TO 32", "1 TO 4")
    shipped = (EXAMPLES / "postmark" / "figure1.ap").read_text().splitlines(keepends=True)
    assert "".join(line for line in shipped if not line.startswith("#")) == ours


@needs_programs
def test_figure_1_runs_to_its_table(place: Place) -> None:
    place.quick("postmark/figure1.ap", ("%THREADS% 10 1", "%THREADS% 2 1"), ("> 30", "> 1"))
    said = place.run("postmark/figure1.ap")
    names = [f"{fs}:{threads}" for fs in ("ext2", "ext4", "xfs", "btrfs") for threads in (1, 2, 4)]
    table = [line.split()[0] for line in said.splitlines() if line.startswith(" ") and ":" in line]
    assert table == names
    assert sorted(path.name for path in place.results.glob("*.res")) == sorted(
        f"{name}.res" for name in names
    )
    rows = [row for row in lines(place.results, "ext4-4") if row["trial"] == 1]
    assert [row["worker"] for row in rows] == [0, 1, 2, 3]
    assert [row["command"] for row in rows] == [["postmark"]] * 4
    assert len({row["metrics"]["files_created"][0] for row in rows}) > 1, "each worker has a seed of its own"
    facts = place.blocks("xfs-1", "filesystem")
    assert facts[0] == "fs = xfs"
    assert any("mkfs.xfs" in line for line in facts) == (place.user is None and os.geteuid() == 0)
    notices = place.blocks("xfs-1", "notice")
    assert ("plain directory" in "".join(notices)) == facts[-1].startswith("mount_point")


@pytest.mark.quick
@needs_programs
@pytest.mark.parametrize("place", [pytest.param("root", marks=pytest.mark.serial)], indirect=True)
def test_figure_1_runs_on_a_real_ext4(place: Place) -> None:
    place.quick(
        "postmark/figure1.ap",
        ("ext2 ext4 xfs btrfs", "ext4"),
        ("1 TO 4", "1 TO 2"),
        ("%THREADS% 10 1", "%THREADS% 2 1"),
        ("> 30", "> 1"),
    )
    place.run("postmark/figure1.ap")
    rows = lines(place.results, "ext4-2")
    assert [(row["trial"], row["worker"], row["exit_status"]) for row in rows] == [
        (trial, worker, 0) for trial in (1, 2) for worker in (0, 1)
    ]
    assert any("mkfs.ext4" in line for line in place.blocks("ext4-1", "filesystem"))


@needs_programs
def test_the_same_script_compiles_packages_in_three_measured_steps(place: Place) -> None:
    place.quick("compile/compile.inc", (" 3 MAX=10 1", " 2 MAX=2 1"))
    place.run("compile/compile.ap")
    for test in ("generated-ext4", "generated-xfs", "generated-btrfs"):
        rows = lines(place.results, test)
        programs = [row["command"][0] for row in rows if row["trial"] == 2]
        assert programs == ["tar", "./configure", "make"]
        assert all(row["kept"] for row in rows)


@needs_programs
def test_a_package_is_chosen_by_variables_only(place: Place) -> None:
    """lua.ap with an archive of our own: what is compiled and how is not in any script."""
    source = place.path / "lua-1"
    source.mkdir()
    (source / "Makefile").write_text("generic local:\n\techo $@ >>made\n")
    subprocess.run(["tar", "-cf", "lua.tar", "lua-1"], cwd=place.path, check=True)
    place.quick("compile/compile.inc", (" 3 MAX=10 1", " 2 MAX=2 1"))
    place.run("compile/lua.ap", f"PKGFILE={place.path}/lua.tar")
    commands = [row["command"] for row in lines(place.results, "lua-ext4") if row["trial"] == 1]
    assert commands[1:] == [["make", "-s", "generic"], ["make", "-s", "local"]]


@needs_programs
def test_grep_runs_over_more_and_more_files(place: Place) -> None:
    place.quick("grep/grep.ap", ("MAX=30", "MAX=6"))
    place.run("grep/grep.ap")
    tests = experiment(place.results)["tests"]
    assert [test["name"] for test in tests] == ["grep:100", "grep:200", "grep:400", "grep:800"]
    assert {test["cache"] for test in tests} == {"warm"}
    rows = lines(place.results, "grep-800")
    assert (rows[0]["trial"], rows[0]["kept"]) == (0, False)
    assert len(rows) >= 6


@needs_programs
def test_hashed_directories_are_compared_with_lists(place: Place) -> None:
    place.quick("hooks/htree/htree.ap", ("5 MAX=20 1", "3 MAX=3 1"))
    place.run("hooks/htree/htree.ap")
    as_root = place.user is None and os.geteuid() == 0
    for test, expected in (("htree-on", "dir_index"), ("htree-off", "^dir_index")):
        ran = [line for line in place.blocks(test, "filesystem") if line.startswith("ran = tune2fs")]
        assert [line.split()[4] for line in ran] == ([expected] * 3 if as_root else [])
        assert len(lines(place.results, test)) == 3


@needs_programs
def test_an_overlay_is_compared_with_what_is_below_it(place: Place) -> None:
    place.quick("hooks/stackable/stackable.ap", ("5 MAX=20 1", "3 MAX=3 1"))
    place.run("hooks/stackable/stackable.ap")
    as_root = place.user is None and os.geteuid() == 0
    facts = "\n".join(place.blocks("overlay-ext4", "filesystem"))
    assert (" mount -t overlay " in facts) == as_root
    assert "overlay" not in "\n".join(place.blocks("ext4", "filesystem"))
    assert len(lines(place.results, "overlay-ext4")) == 3


@needs_programs
def test_a_run_that_is_killed_leaves_nothing_that_the_next_does_not_remove(place: Place) -> None:
    log = place.path / "log"
    with open(log, "wb") as output:
        as_user = [] if place.user is None else ["setpriv", f"--reuid={place.user}", "--clear-groups", "--"]
        process = subprocess.Popen(
            [*as_user, ETUDE, "run", "-o", str(place.path / "killed"), "examples/postmark/figure1.ap"],
            cwd=place.path,
            env=os.environ | LITTLE | {"APSCRATCH": str(place.scratch), "POSTMARK_TRANSACTIONS": "10000000"},
            stdout=output,
            stderr=output,
        )
        until = time.monotonic() + 60
        while not (place.scratch / "mnt" / "postmark-1").exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        process.kill()
        process.wait()
    assert place.left() != []
    place.quick("grep/grep.ap", ("100 TO 800", "100 TO 100"))
    place.run("grep/grep.ap")


class Posts(BaseHTTPRequestHandler):
    """Keeps what is posted."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("command", "event"), [("false", "failure"), ("true", "completion")])
def test_who_asked_for_it_is_told_of_a_failure_and_of_completion(
    tmp_path: Path, command: str, event: str
) -> None:
    server = HTTPServer(("127.0.0.1", 0), Posts)
    server.posts = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "sendmail").write_text(f"#!/bin/sh\ncat >{tmp_path}/mail\n")
    (tmp_path / "sendmail").chmod(0o755)
    (tmp_path / "both.sh").write_text("#!/bin/sh\nnotify-mail.sh && notify-url.sh\n")
    (tmp_path / "both.sh").chmod(0o755)
    (tmp_path / "local.inc").write_text(
        f"ENV APURL=http://127.0.0.1:{server.server_address[1]}/\n"
        f"ENV APMAILTO=me@example.org\nENV APSENDMAIL={tmp_path}/sendmail\n"
        f"ENV APNOTIFY=mail url\nFASTFAIL {tmp_path}/both.sh\n"
    )
    script = f"INCLUDE common.inc\nTEST it 1\nEXEC {command}\nDONE\nINCLUDE ok.inc\n"
    (tmp_path / "x.ap").write_text(script)
    try:
        words = [ETUDE, "run", "-o", "r", "-I", ".", "x.ap"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == (4 if event == "failure" else 0), done.stderr
        (post,) = server.posts  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
    mail = (tmp_path / "mail").read_text()
    assert post["event"] == event
    assert post["script"] == str(tmp_path / "x.ap")
    assert post["results"] == str(tmp_path / "r")
    if event == "failure":
        assert "exit status 1" in post["reason"]
        assert post["reason"] in mail
        assert post["test"] == "it"
    else:
        assert "x.ap is complete" in mail


def test_every_example_passes_a_check() -> None:
    for script in sorted(EXAMPLES.rglob("*.ap")):
        called("run", "--check", str(script.relative_to(EXAMPLES.parent)), cwd=EXAMPLES.parent)
