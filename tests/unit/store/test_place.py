"""Where a store is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from etude.errors import InputError, MachineRefuses, UsageError
from etude.store.database import WRITING, engine_of, open_store, place_text, url_of, with_retries


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETUDE_STORE", raising=False)


def test_without_a_word_it_is_that_of_the_environment_or_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place_text(url_of(None)) == str(tmp_path / "etude-store.sqlite")
    monkeypatch.setenv("ETUDE_STORE", "postgresql://me@host/lab")
    assert place_text(url_of(None)) == "postgresql://me@host/lab"


def test_a_path_is_a_file_of_sqlite(tmp_path: Path) -> None:
    names = ("a b%20?c#d.sqlite", "sqlite:///a.sqlite", tmp_path / "x")
    assert [place_text(url_of(name)) for name in names] == [
        str(tmp_path / last) for last in ("a b%20?c#d.sqlite", "a.sqlite", "x")
    ]


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=str(tmp_path)), open_store(tmp_path) as store:
        store.tests()


def test_a_password_is_not_shown() -> None:
    assert "secret" not in place_text(url_of("postgresql://me:secret@host/lab"))


@pytest.mark.parametrize(
    "text", ["mysql://host/lab", "http://host", "sqlite://", "sqlite:///:memory:", "://secret"]
)
def test_other_databases_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"sqlite:///FILE .*postgresql:") as refused:
        url_of(text)
    assert "secret" not in str(refused.value)


def test_a_directory_that_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match=r"\bnone\b"):
        engine_of(url_of("none/store.sqlite"))


def test_a_missing_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MachineRefuses, match=r"pip install 'etude\[postgresql\]'"):
        engine_of(url_of("postgresql://host/lab"))


@pytest.mark.needs_root
@pytest.mark.parametrize(
    ("user", "mode", "group"), [("", 0o600, 0), ("1", 0o640, 1), ("65534", 0o600, 0), ("4000000", 0o600, 0)]
)
def test_a_store_that_root_makes_is_nobody_elses_to_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, mode: int, group: int
) -> None:
    """Of daemon, whose group is its own; and of nobody, whose group (nogroup) is not."""
    monkeypatch.setenv("SUDO_UID", user)
    with engine_of(url_of("s.sqlite")).connect():
        found = (tmp_path / "s.sqlite").stat()
    assert (found.st_mode & 0o777, found.st_gid) == (mode, group)


def test_who_keeps_a_store_locked_is_named(tmp_path: Path) -> None:
    engine = engine_of(url_of("s.sqlite"), 0.1)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
    lock = (
        "import fcntl, time; f = open('s.sqlite', 'rb'); fcntl.lockf(f, fcntl.LOCK_SH); print(flush=True); "
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", lock], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()

        def attempt() -> None:
            with engine.execution_options(**{WRITING: True}).begin() as connection:
                connection.exec_driver_sql("INSERT INTO t VALUES (1)")

        with pytest.raises(MachineRefuses, match=rf"process {other.pid}, python"):
            with_retries(attempt, str(tmp_path / "s.sqlite"), "nothing", lambda _: None)
        other.kill()
