"""What another user of the machine tries against root's Étude (docs/explanation/security.md, "What was tried")."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from etude.cluster.pool.staging import HOLD
from etude.experiment.plan import _digest
from etude.iolab import lab as lab_module
from etude.machine.remote.link import PREFIX
from support.real import ETUDE, one_line

pytestmark = [pytest.mark.serial, pytest.mark.needs_root]

EVE = 65534
"""The number of `nobody`."""
REFUSED, MISSING = 3, 5
HANGS_S = float(os.environ.get("ETUDE_PATIENCE_S", "60"))
"""A command that waits for longer is held up."""
SPY = "#!/bin/sh\nid -u > {0}\n"


@dataclass(frozen=True)
class Place:
    """A sticky directory, as /tmp is, another of root's, and one of eve's. Whatever of hers is run leaves `owned`."""

    shared: Path
    roots: Path
    eves: Path
    owned: Path

    def eve(self, script: str) -> None:
        """What she does, by a shell in the sticky directory. $SPY is a program of hers."""
        subprocess.run(["sh", "-ec", script], check=True, timeout=HANGS_S, **self._hers())

    @contextmanager
    def eve_goes_on(self, script: str) -> Iterator[None]:
        """She does that all the while."""
        hers = subprocess.Popen(["sh", "-c", script], start_new_session=True, **self._hers())
        try:
            yield
        finally:
            os.killpg(hers.pid, signal.SIGKILL)
            hers.wait()

    def root(self, *words: str, cwd: Path | None = None, **environment: str) -> tuple[int, str]:
        """Exit status of root's etude, and what it printed; its last line alone where it failed."""
        done = subprocess.run(
            [ETUDE, *words],
            cwd=cwd or self.roots,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        if done.returncode in (0, 1):
            return done.returncode, done.stdout + done.stderr
        return done.returncode, one_line(done.stderr.replace(f"etude {words[0]}: ", "etude: "))

    def refused(self, *words: str, cwd: Path | None = None, **environment: str) -> bool:
        """Whether that is, since she could have written what root would act on."""
        code, said = self.root(*words, cwd=cwd, **environment)
        return code == REFUSED and said.endswith(("refused", "name another", "trust what it holds"))

    def results(self, directory: Path, *words: str) -> None:
        """Root makes some."""
        assert self.root("bench", "-r", "3", "-n", "a", "true", "-o", str(directory), *words)[0] == 0

    def _hers(self) -> dict[str, object]:
        environment = {"PATH": "/usr/bin:/bin", "SPY": str(self.eves / "spy"), "EVES": str(self.eves)}
        hers = {"user": EVE, "group": EVE, "extra_groups": []}
        return {"cwd": self.shared, "env": environment | {"ROOTS": str(self.roots)}, **hers}


@pytest.fixture
def place() -> Iterator[Place]:
    top, other = (Path(tempfile.mkdtemp(prefix="etude-others-", dir=above)) for above in ("/tmp", "/var/tmp"))
    for path in (top, other):
        path.chmod(0o755)
    found = Place(top / "shared", other / "roots", other / "eves", top / "shared/owned")
    for path, mode in ((found.shared, 0o1777), (found.roots, 0o755), (found.eves, 0o755)):
        path.mkdir()
        path.chmod(mode)
    os.chown(found.eves, EVE, EVE)
    (found.eves / "spy").write_text(SPY.format(found.owned))
    (found.eves / "spy").chmod(0o755)
    os.chown(found.eves / "spy", EVE, EVE)
    yield found
    for path in (top, other):
        shutil.rmtree(path)


@pytest.fixture(autouse=True)
def nothing_is_run(place: Place) -> Iterator[None]:
    """Whatever she tries: none of her programs may have run as root."""
    yield
    assert not place.owned.exists() or place.owned.stat().st_uid == EVE


# --- results that are gone on with ----------------------------------------------------------------

RESUMED = {
    "bench --resume": ("bench", "--resume"),
    "run --again": ("run", "--again"),
    "run --resume": ("run", "--resume"),
    "io lab --resume": ("io", "lab", "--resume"),
}


@pytest.fixture(params=RESUMED)
def resumed(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return RESUMED[request.param]


def hostile(place: Place) -> Path:
    """Results in her directory, whose plan and digest fit, and whose command is hers."""
    made = place.shared / "made"
    place.results(made)
    document = json.loads((made / "experiment.json").read_text())
    text = json.dumps(document).replace('"true"', json.dumps(str(place.eves / "spy")))
    document = json.loads(text)
    document["digest"] = _digest(document["plan"])
    document["sittings"][-1]["how_ended"] = "killed"
    (made / "experiment.json").write_text(json.dumps(document))
    lab = {"format": lab_module.FORMAT, "version": lab_module.VERSION, "where": str(place.eves)}
    (made / lab_module.RECORD).write_text(json.dumps(lab | {"trials": 3, "cpu": None, "seed": 1}))
    for path in (made, *made.rglob("*")):
        os.chown(path, EVE, EVE)
    return made.rename(place.eves / "results")


def test_results_of_hers_are_not_gone_on_with(place: Place, resumed: tuple[str, ...]) -> None:
    assert place.refused(*resumed, str(hostile(place)))


def test_nor_by_a_link_of_hers(place: Place, resumed: tuple[str, ...]) -> None:
    hostile(place)
    place.eve("ln -s $EVES/results link")
    assert place.refused(*resumed, str(place.shared / "link"))


def test_nor_where_they_come_and_go(place: Place) -> None:
    hostile(place)
    with place.eve_goes_on("cd $EVES; while :; do mv results r; mv r results; done"):
        for _ in range(10):
            code, _line = place.root("run", "--again", str(place.eves / "results"))
            assert code in (2, REFUSED)


def test_a_fifo_in_their_place_holds_nothing_up(place: Place, resumed: tuple[str, ...]) -> None:
    place.eve("mkdir f; mkfifo f/experiment.json f/lab.json f/state.json")
    assert place.root(*resumed, str(place.shared / "f"))[0] in (2, REFUSED)


def test_a_bundle_of_hers_is_not_run_again(place: Place) -> None:
    results = hostile(place)
    bundle = place.shared / "b.tar.gz"
    assert place.root("bundle", str(results), "-o", str(bundle))[0] == 0
    os.chown(bundle, EVE, EVE)
    assert place.refused("run", "--again", str(bundle))
    with place.eve_goes_on("while :; do mv b.tar.gz x; mkdir b.tar.gz; rmdir b.tar.gz; mv x b.tar.gz; done"):
        for _ in range(10):
            assert place.root("run", "--again", str(bundle))[0] in (2, REFUSED)


def test_roots_results_are_gone_on_with_while_she_locks_them(place: Place) -> None:
    results = place.shared / "r"
    place.results(results)
    with place.eve_goes_on("exec flock -s r sleep 60"):
        time.sleep(0.3)
        assert place.root("bench", "--resume", str(results), "-r", "4")[0] == 0
    with place.eve_goes_on("flock -s r sleep 60 & sleep 0.2; kill $!; sleep 60"):  # held by a child
        time.sleep(0.4)
        assert place.root("bench", "--resume", str(results), "-r", "5")[0] == 0


def test_a_replay_does_not_wait_for_her_lock_of_its_directory(place: Place) -> None:
    (place.roots / "data").write_text("x" * 1000)
    for words in (
        ("record", "-o", "t", "cat", "data"),
        ("script", "t", "-o", "t.script"),
        ("compile", "t.script", "-o", "t.roll"),
    ):
        assert place.root(*words)[0] == 0
    assert place.root("prepare", "t.roll", "files")[0] == 0
    with place.eve_goes_on("exec flock -s $ROOTS/files sleep 60"):
        time.sleep(0.3)
        assert place.root("replay", "t.roll", "files")[0] == 0
    lock = "import fcntl, os, time; fcntl.flock(os.open('files', 0), fcntl.LOCK_SH); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", lock], cwd=place.roots, stdout=subprocess.PIPE) as roots_own:
        assert roots_own.stdout is not None
        roots_own.stdout.readline()
        assert place.root("replay", "t.roll", "files")[0] == MISSING
        roots_own.kill()


@pytest.mark.parametrize("how", ["mkfifo", "ln -s /dev/zero"])
@pytest.mark.parametrize("name", ["a/results.jsonl", "a/blocks.jsonl", "experiment.json"])
def test_results_of_hers_are_read_to_an_end(place: Place, how: str, name: str) -> None:
    results = hostile(place)
    place.eve(f"rm -f {results}/{name}; {how} {results}/{name}")
    assert place.root("stats", str(results))[0] == REFUSED
    assert place.root("report", str(results), "-o", str(place.roots / "p.html"))[0] == REFUSED


def test_a_bundle_holds_nothing_that_a_link_of_hers_leads_to(place: Place) -> None:
    results = hostile(place)
    (place.roots / "secret").write_text("secret\n")
    place.eve(
        f"ln -s $ROOTS/secret {results}/notes; mkdir {results}/a/logs; ln -s $ROOTS/secret {results}/a/logs/0"
    )
    assert place.root("bundle", str(results), "-o", str(place.roots / "b.tar"))[0] == 0
    assert b"secret" not in (place.roots / "b.tar").read_bytes()


# --- results that are begun -----------------------------------------------------------------------

PLANTED = {
    "her directory": "mkdir etude-results",
    "a link": "ln -s $ROOTS/kept etude-results",
    "a file": "touch etude-results",
    "a fifo": "mkfifo etude-results",
}


@pytest.mark.parametrize("how", PLANTED)
def test_results_do_not_go_where_she_has_put_a_directory(place: Place, how: str) -> None:
    (place.roots / "kept").mkdir()
    place.eve(PLANTED[how])
    assert place.refused("bench", "-r", "3", "true", cwd=place.shared)
    named = ("bench", "-r", "3", "true", "-o", str(place.shared / "etude-results"))
    if how in ("a file", "a fifo"):  # no directory, whoever put it there
        assert place.root(*named)[0] == MISSING
    else:
        assert place.refused(*named)
    assert list((place.roots / "kept").iterdir()) == []


def test_nor_into_one_that_all_may_write_to(place: Place) -> None:
    assert place.refused("bench", "-r", "3", "true", "-o", str(place.shared))


# --- commands that a file says --------------------------------------------------------------------

SPEC = '[response]\ncommand = "{}"\n[factor.a]\nlevels = [1, 2]\n'
HARNESS = 'name = "h"\n[commands]\nstart = "{0}"\nload = "{0} {{load}}"\n'


@pytest.mark.parametrize(
    ("words", "text"),
    [(("surface",), SPEC), (("peak",), HARNESS), (("hosts",), "[hosts.a]\naddress = '{0}'\n")],
    ids=["surface", "peak", "hosts"],
)
@pytest.mark.parametrize(
    "how",
    ["cp s s.toml", "ln -s $EVES/s s.toml", "ln -s s s.toml; mv s $EVES/t; ln -s $EVES/t s", "mkfifo s.toml"],
    ids=["hers", "link", "links", "fifo"],
)
def test_specs_of_hers_are_not_run(place: Place, words: tuple[str, ...], text: str, how: str) -> None:
    for directory in (place.eves, place.shared):
        (directory / "s").write_text(text.format(place.eves / "spy"))
        os.chown(directory / "s", EVE, EVE)
    place.eve(how)
    spec = str(place.shared / "s.toml")
    more = ("-o", str(place.roots / "r")) if words[0] in ("surface", "peak") else ()
    assert place.refused(*words, spec, *more)


SCRIPT = "INCLUDE local.inc\nTEST a 3\n  EXEC true\nDONE\n"


def test_includes_of_hers_are_not_run(place: Place) -> None:
    script = place.shared / "s.ap"
    script.write_text(SCRIPT)
    place.eve('echo "! $SPY" > local.inc')
    assert place.refused("run", str(script), "-o", str(place.roots / "r"))


def test_includes_of_hers_that_come_and_go_are_not_run(place: Place) -> None:
    script = place.shared / "s.ap"
    script.write_text(SCRIPT)
    (place.roots / "local.inc").write_text("ECHO a\n")
    place.eve("echo FROBNICATE > x")
    with place.eve_goes_on("while :; do ln x local.inc; rm local.inc; done"):
        for _ in range(10):
            code, said = place.root("run", "-I", str(place.roots), str(script), "--check")
            assert code in (0, REFUSED), said


def test_probes_of_hers_are_not_run(place: Place) -> None:
    place.eve("mkdir -p $EVES/lib/probes.d; cp $SPY $EVES/lib/probes.d/a")
    script = place.roots / "s.ap"
    script.write_text("TEST a 3\n  EXEC true\nDONE\n")
    library = str(place.eves / "lib")
    assert place.refused("run", str(script), "-o", str(place.roots / "r"), APLIB=library)


@pytest.mark.parametrize("name", ["commonsettings.d/a", "host/$(hostname)", "os/$(uname -s)"])
def test_settings_of_hers_are_not_sourced(place: Place, name: str) -> None:
    place.eve(f'mkdir -p $EVES/lib/{name.split("/")[0]}; echo ". $SPY" > "$EVES/lib/{name}"')
    from etude.script.environment import shipped_directory

    words = ["bash", "-c", f". {shipped_directory()}/commonsettings"]
    done = subprocess.run(
        words, env=os.environ | {"APLIB": str(place.eves / "lib")}, capture_output=True, check=False
    )
    assert done.returncode != 0


def test_a_directory_for_tests_that_she_made_is_not_used(place: Place) -> None:
    place.eve("mkdir -p scratch/mnt")
    from etude.script.environment import shipped_directory

    words = ["bash", "-c", f". {shipped_directory()}/commonsettings; ap_workdir a; touch {place.roots}/used"]
    subprocess.run(
        words, env=os.environ | {"APSCRATCH": str(place.shared / "scratch")}, capture_output=True, check=False
    )
    assert not (place.roots / "used").exists()


UNDO = {"version": 1, "steps": [{"undo": "run", "command": "SPY", "directory": "/"}]}


@pytest.mark.parametrize("how", ["", "ln -s $EVES/h x", "ln $EVES/h x", "mkfifo x", "mkdir x"])
def test_undoing_of_hers_is_not_done(place: Place, how: str) -> None:
    """She writes to root's directory, which lets her; then to a directory of her own."""
    from etude.errors import EtudeError
    from etude.machine.resources.resource import undo_left

    (place.eves / "h").write_text(json.dumps(UNDO).replace("SPY", str(place.eves / "spy")))
    os.chown(place.eves / "h", EVE, EVE)
    for name in ("resources.json", "resources.lock"):
        for directory in (place.shared, place.eves / "mine"):
            place.eve(
                f"mkdir -p $EVES/mine; cd {directory}; rm -rf resources.*; cp $EVES/h x; {how and 'rm x;'}"
            )
            place.eve(f"cd {directory}; {how or ':'}; mv x {name}")
            with pytest.raises(EtudeError):
                undo_left(directory)


# --- programs and modules -------------------------------------------------------------------------


def test_modules_in_the_working_directory_are_not_imported(place: Place) -> None:
    """By etude, and by what it starts of itself."""
    place.eve(
        "mkdir etude; echo 'import os; os.system(os.environ[\"SPY\"])' | tee etude/__init__.py > orjson.py"
    )
    script = place.roots / "s.ap"
    script.write_text("TEST a 3\n  EXEC true\nDONE\n")
    (place.roots / "s.toml").write_text('[response]\nscript = "s.ap"\n[factor.a]\nlevels = [1]\n')
    spy = str(place.eves / "spy")
    where = str(place.roots / "r")
    place.root("surface", str(place.roots / "s.toml"), "-o", where, cwd=place.shared, SPY=spy)
    place.root(
        "surface",
        str(place.roots / "s.toml"),
        "-o",
        f"{where}2",
        "--pool",
        "local",
        cwd=place.shared,
        SPY=spy,
    )
    place.root("bench", "true", "-r", "3", "-o", f"{where}3", "--pool", "local", cwd=place.shared, SPY=spy)


def test_tools_are_not_looked_for_where_she_may_put_them(place: Place) -> None:
    place.eve("for name in git mount losetup systemctl ssh etude-engine; do cp $SPY $name; done")
    found = place.root(
        *("store", "add", str(place.shared / "r"), "--repository", str(place.roots)),
        *("--store", str(place.roots / "s.sqlite")),
        PATH=f"{place.shared}::.:{os.environ['PATH']}",
        cwd=place.shared,
    )
    assert found[0] == (REFUSED if shutil.which("git") else MISSING)


@pytest.mark.parametrize(
    "path", ["{shared}", "{eves}", "{shared}/not-yet", "{roots}:", "{roots}\nExecStartPre={eves}/spy", "."]
)
def test_nothing_is_imported_at_boot_where_she_may_put_it(place: Place, path: str) -> None:
    from etude.errors import InputError
    from etude.machine.boot import unit

    top = place.roots / "machine"
    (top / "sbin").mkdir(parents=True)
    given = path.format(shared=place.shared, eves=place.eves, roots=place.roots)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", given)
        with pytest.raises(InputError):
            unit.install(top)
    assert not (top / "etc").exists()


def test_files_are_not_prepared_where_a_link_of_hers_leads(place: Place) -> None:
    script = place.roots / "s.script"
    script.write_text('etude script 1\ndirectory "a"\nfile "a/f" 3\n0: stat("a/f") = 0\n')
    (place.roots / "kept").mkdir()
    place.eve("mkdir d; ln -s $ROOTS/kept d/a; ln -s $ROOTS/kept e")
    for name in ("d", "e"):
        assert place.root("prepare", str(script), str(place.shared / name))[0] != 0
    with place.eve_goes_on("mkdir f; while :; do mkdir f/a; rmdir f/a; ln -s $ROOTS/kept f/a; rm f/a; done"):
        for _ in range(20):
            place.root("prepare", "-q", str(script), str(place.shared / "f"))
    assert list((place.roots / "kept").iterdir()) == []


def test_a_file_system_is_not_mounted_anew_where_she_could_put_a_link(place: Place) -> None:
    from etude.errors import InputError
    from etude.machine.cool.steps import check_remountable
    from etude.osutil.mounts import Mount

    target = place.eves / "mnt"
    known = {each.name: "" for each in fields(Mount)} | {
        "target": str(target),
        "source": "/dev/loop0",
        "within": "/",
    }
    with pytest.raises(InputError):
        check_remountable(Mount(**known | {"kind": "ext4", "options": ()}))


def test_a_node_is_held_by_no_directory_of_hers(place: Place) -> None:
    place.eve(f"mkdir {PREFIX}a")
    held = HOLD.replace("/tmp/", f"{place.shared}/").replace("sleep 60", ":")
    subprocess.run(["sh", "-c", held], check=False, timeout=HANGS_S)


# --- locks, temporary files, stores ---------------------------------------------------------------


@pytest.mark.parametrize(
    "how", ["mkfifo l", "mkdir l", "ln -s /etc/passwd l", "exec 9>l; flock 9; touch ready; sleep 60"]
)
def test_the_lock_of_the_machine_is_not_hers(place: Place, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the users' lock, whatever stands at its name; root's own stands in a directory of root's."""
    from etude.cluster.pool import local

    monkeypatch.setattr(local, "USERS_LOCK", place.shared / "l")
    monkeypatch.setattr(local, "ROOTS_LOCK", place.roots / "l")
    with place.eve_goes_on(how):
        time.sleep(0.2)
        pool = local.LocalPool()
        lock = pool._locked()
        assert lock is not None
        os.close(lock)
        place.roots.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:  # as another user would take it
            patch.setattr(local, "PATIENCE_S", 0.0)
            if "mkfifo" in how:
                os.close(local._opened(place.shared / "l"))


def test_what_killed_runs_left_is_removed_by_no_name_of_hers(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from etude.osutil.files import scratch_directory

    (place.roots / "kept").mkdir()
    (place.roots / "kept/file").touch()
    place.eve("ln -s $ROOTS/kept etude-scratch-a; mkfifo etude-scratch-b; mkdir etude-scratch-c")
    monkeypatch.setattr(tempfile, "tempdir", str(place.shared))
    with scratch_directory() as path:
        assert path.stat().st_mode & 0o077 == 0
    assert (place.roots / "kept/file").exists()
    assert sorted(os.listdir(place.shared)) == [f"etude-scratch-{name}" for name in "abc"]


def added(place: Place, name: str = "r") -> tuple[str, ...]:
    """The words that add results of root's to a store."""
    committed = ("--commit", "a" * 40, "--committed", "2026-01-01T00:00:00Z")
    return "store", "add", str(place.roots / name), *committed


def test_a_store_is_not_written_where_she_puts_files(place: Place) -> None:
    """A link to a file that is empty; and a journal, which SQLite would play back into root's store."""
    place.results(place.roots / "r")
    (place.roots / "empty").touch()
    place.eve("ln -s $ROOTS/empty etude-store.sqlite")
    assert place.refused(*added(place), cwd=place.shared)
    assert (place.roots / "empty").stat().st_size == 0


def test_a_store_of_hers_runs_nothing_and_reads_nothing(place: Place) -> None:
    """Triggers, views and a journal that is a link: what they do, they do to her own store."""
    place.results(place.roots / "r")
    store, secret = place.eves / "s.sqlite", place.roots / "secret"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    assert place.root(*added(place), "--store", str(store))[0] == 0
    with sqlite3.connect(store) as database:
        named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        tables = [name for (name,) in database.execute(named)]
        for number, name in enumerate(tables):
            database.execute(
                f"CREATE TRIGGER t{number} AFTER INSERT ON {name} BEGIN SELECT writefile('{place.owned}', 'x'); END"
            )
    os.chown(store, EVE, EVE)
    place.eve(f"ln -s {secret} $EVES/s.sqlite-journal; ln -s {secret} $EVES/s.sqlite-wal")
    place.results(place.roots / "r2")
    code, _ = place.root(*added(place, "r2"), "--store", str(store))
    assert code in (1, 3, 4, 5)
    assert secret.read_text() == "secret\n"


def test_a_store_of_roots_is_not_locked_by_her(place: Place) -> None:
    place.results(place.roots / "r")
    place.results(place.roots / "r2")
    assert place.root(*added(place))[0] == 0
    lock = "import fcntl, time; f = open('etude-store.sqlite', 'rb'); fcntl.lockf(f, fcntl.LOCK_SH); time.sleep(60)"
    with place.eve_goes_on(f'cd $ROOTS; exec python3 -c "{lock}"'):
        time.sleep(0.5)
        assert place.root(*added(place, "r2"))[0] == 0
