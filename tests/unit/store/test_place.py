"""Where a store is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from etude.errors import InputError, MachineRefuses, UsageError
from etude.store.place import engine_of, shown, url_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ETUDE_STORE", raising=False)


def test_without_a_word_it_is_that_of_the_environment_or_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(url_of(None)) == str(tmp_path / "etude-store.sqlite")
    monkeypatch.setenv("ETUDE_STORE", "postgresql://me@host/lab")
    assert shown(url_of(None)) == "postgresql://me@host/lab"


def test_a_path_is_a_file_of_sqlite(tmp_path: Path) -> None:
    names = ("a b%20?c#d.sqlite", "sqlite:///a.sqlite", tmp_path / "x")
    assert [shown(url_of(name)) for name in names] == [
        str(tmp_path / last) for last in ("a b%20?c#d.sqlite", "a.sqlite", "x")
    ]


def test_a_password_is_not_shown() -> None:
    assert "secret" not in shown(url_of("postgresql://me:secret@host/lab"))


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
