"""Tables of other programs."""

from __future__ import annotations

import csv
import errno
import io
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.results.delimited import Table, read_table, text_cell


def read(directory: Path, text: str) -> Table:
    file = directory / "t.csv"
    file.write_bytes(text.encode())
    return read_table(file)


@pytest.mark.parametrize(
    "text", ["a,b\n1, x\n2.5,y\n", "a\tb\n1\tx\n\n2.5\ty", "\ufeffa,b\r\n1,x\r\n2.5,y\r\n"]
)
def test_a_table_has_names_and_rows(tmp_path: Path, text: str) -> None:
    table = read(tmp_path, text)
    assert table == Table(("a", "b"), (("1", "x"), ("2.5", "y")))
    assert table.numbers("a") == [1.0, 2.5]
    why = table.numbers("b")
    assert isinstance(why, str)
    assert "'x' in row 2" in why


@pytest.mark.parametrize("cell", ["inf", "nan", "1_0", "", "1,5"])
def test_a_number_is_finite_and_plain(tmp_path: Path, cell: str) -> None:
    why = read(tmp_path, f'a\n1\n"{cell}"\nx\n').numbers("a")
    assert isinstance(why, str)
    assert f"{cell!r} in row 3" in why


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no table"),
        ("a,b\n", "holds no table"),
        ("a,b\n1\n", r"row 2 has 1 .*\b2$"),
        ("a,a\n1,2\n", "one name"),
        (f"a,b\n1,{'x' * 200_000}\n", "field larger"),
    ],
)
def test_what_is_no_table_is_one_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "t.csv"))


def test_a_file_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"/x: .*{os.strerror(errno.ENOENT)}"):
        read_table(tmp_path / "x")


cells = st.text(st.characters(codec="ascii", exclude_characters="\t\r\n\0"), min_size=1, max_size=6).map(
    str.strip
)


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=1, max_size=4)
    )
)
def test_a_table_survives_its_file(rows: list[list[str]]) -> None:
    text = io.StringIO()
    header = [f"c{i}" for i in range(len(rows[0]))]
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    with tempfile.TemporaryDirectory() as directory:
        assert read(Path(directory), text.getvalue()).rows == tuple(map(tuple, rows))


@given(st.binary())
def test_any_bytes_are_a_table_or_an_input_error(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "x.csv"
        file.write_bytes(data)
        try:
            table = read_table(file)
        except InputError:
            return
        for name in table.header:
            table.numbers(name)


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-name", "@sum", "\t=1", "-inf", "=-1"])
def test_a_cell_that_would_be_a_formula_is_text(text: str) -> None:
    assert text_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "ls -l", "-1.5", "+2", "1e-3", "a=b"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert text_cell(text) == text
