"""Which reader reads a file."""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from etude.errors import InputError
from etude.results import readers
from etude.results.readers import read_table
from golden.corpus import lay_out
from support.sampled import DATA


def plug_in(monkeypatch: pytest.MonkeyPatch, name: str, module: ModuleType | None) -> None:
    """Another package's reader, as if it were installed."""
    if module is not None:
        monkeypatch.setitem(sys.modules, f"plug_in_{name}", module)
    known = readers._points()
    known.setdefault(name, []).append(EntryPoint(name, f"plug_in_{name}", readers.GROUP))
    monkeypatch.setattr(readers, "_points", lambda: known)


def reader(name: str, claims: bool = True) -> ModuleType:
    module = ModuleType(name)
    module.NAME = name  # type: ignore[attr-defined]
    module.detect = lambda path, head: claims  # type: ignore[attr-defined]
    module.read = lambda path: read_table(f"go:{DATA / 'go.txt'}")  # type: ignore[attr-defined]
    return module


def test_a_plug_in_is_asked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "mine", reader("mine"))
    (tmp_path / "t").write_text("of mine\n")
    assert "mine" in readers._points()
    assert read_table(tmp_path / "t").frame.height == 9


def test_two_that_claim_a_file_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "mine", reader("mine"))
    path = DATA / "fio.json"
    with pytest.raises(InputError, match=rf"fio\.json: .*fio and mine.* fio:{path}"):
        read_table(path)
    assert read_table(f"fio:{path}").frame.height == 2
    assert read_table(f"mine:{path}").frame.height == 9


def test_a_general_reader_is_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    general = reader("mine")
    general.GENERAL = True  # type: ignore[attr-defined]
    plug_in(monkeypatch, "mine", general)
    assert read_table(DATA / "fio.json").frame.height == 2
    with pytest.raises(InputError, match=r"table\.csv: .*csv and mine"):
        read_table(DATA / "table.csv")


def test_a_plug_in_that_cannot_be_loaded_is_passed_over_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "broken", None)
    (warning,) = read_table(DATA / "go.txt").warnings
    assert "'broken' (plug_in_broken)" in warning
    assert "ModuleNotFoundError" in warning
    with pytest.raises(InputError, match="cannot be loaded"):
        read_table(f"broken:{DATA / 'go.txt'}")


def test_one_name_of_two_packages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, "fio", reader("fio"))
    with pytest.raises(InputError, match=r"'fio' .*etude\.results\.readers\.fio and plug_in_fio"):
        read_table(f"fio:{DATA / 'fio.json'}")


def test_a_mistake_of_a_reader_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = reader("wrong")
    wrong.read = lambda path: [][1]  # type: ignore[attr-defined]
    plug_in(monkeypatch, "wrong", wrong)
    with pytest.raises(InputError, match=r"go\.txt: .*\bwrong\b.*IndexError"):
        read_table(f"wrong:{DATA / 'go.txt'}")


def test_what_no_format_claims_names_those_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("Dear reader\n")
    with pytest.raises(InputError, match=r"/t: .*\(ab, asv, autopilot, criterion, csv, .*sysbench, wrk\)"):
        read_table(tmp_path / "t")


def test_an_empty_file_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"")
    with pytest.raises(InputError, match="t: is empty"):
        read_table(tmp_path / "t")


@pytest.mark.parametrize("name", ["", "fio:"])
def test_a_file_that_is_missing_is_said_to_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"/x: .*{os.strerror(errno.ENOENT)}"):
        read_table(f"{name}{tmp_path / 'x'}")


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"/pipe: .*no file"):
        read_table(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["load/overloaded.jsonl", "replays/changed.json"])
def test_an_output_that_the_report_reads_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="etude report"):
        read_table(lay_out(name, tmp_path))


def test_a_directory_without_an_experiment_is_of_no_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no known format"):
        read_table(tmp_path)


def test_a_file_that_is_called_as_a_format_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fio:t").write_bytes((DATA / "go.txt").read_bytes())
    assert read_table("fio:t").frame.height == 9


def test_asking_all_readers_does_not_import_polars() -> None:
    code = (
        "import sys; from pathlib import Path; from etude.results import readers as r\n"
        "found, broken = r._all(r._points()); head = b'x' * 65536\n"
        "assert not any(reader.detect(Path('t'), head) for reader in found) and not broken and len(found) >= 18\n"
        "assert not {'polars', 'numpy'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("content", "by"),
    [
        (gzip.compress(b"test,elapsed\na,1\n", mtime=0), "gunzip"),
        (lzma.compress(b"test,elapsed\na,1\n"), "unxz"),
        ("test,elapsed\na,1\n".encode("utf-16"), "iconv"),
    ],
)
def test_a_file_that_is_packed_or_of_another_encoding_is_refused_with_what_helps(
    content: bytes, by: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=by):
        read_table(path)
