"""Every stored input is read as it was read when the golden file was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.errors import EtudeError
from golden.corpus import lay_out, stored
from golden.plain import plain, text_of
from golden.reading import reader_of
from support.golden import compare_file

GOLDEN = Path(__file__).parent / "readers"
INPUTS = [name for name in stored() if reader_of(name) is not None]


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_is_read_as_before(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    read = reader_of(name)
    assert read is not None
    try:
        found = plain(read(Path(name)))
    except EtudeError as error:
        found = {"refused": str(error), "exit code": error.exit_code}
    text = text_of(found).replace(str(tmp_path), "…")
    compare_file(GOLDEN / f"{name}.json", text)


def test_every_input_has_a_reader_or_is_the_engines() -> None:
    engines = ("scripts/", "rolls/", "strace/")
    assert [n for n in stored() if reader_of(n) is None and not n.startswith(engines)] == []
