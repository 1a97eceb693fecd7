"""Text that fits: sentences, names and tables on screens of any width."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from etude.present.section import Column
from etude.present.table_layout import cells_of, cut, shortened, table_lines, wrapped

WORDS = st.text(alphabet=string.ascii_letters + string.digits + "-./é日…µ", min_size=1, max_size=30)
NAMES = st.lists(WORDS, min_size=1, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=30), st.integers(20, 120))
def test_a_sentence_wraps_within_the_width_and_keeps_every_word(words: list[str], width: int) -> None:
    lines = wrapped(" ".join(words), width)
    assert all(cells_of(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(words)


@given(st.lists(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=12), min_size=1, max_size=30))
def test_a_sentence_breaks_between_words_only(words: list[str]) -> None:
    assert " ".join(line.strip() for line in wrapped(" ".join(words), 20)).split() == words


def test_a_number_is_not_parted_from_its_unit_nor_from_its_sign() -> None:
    for width in range(20, 60):
        text = "the mean is 12.35 ms ± 1.9 % of 3 × that, 9.8 … 14.2 µs (95 % at p = .0004) of 12 pairs"
        lines = wrapped(text, width)
        for part in ("12.35 ms", "1.9 %", "± 1.9", "95 %", "14.2 µs", "p = .0004", "12 pairs"):
            assert any(part in line for line in lines), (width, part, lines)


def test_further_lines_are_indented_by_two_more_than_the_first() -> None:
    assert wrapped("  one two three four five", 14) == ["  one two", "    three four", "    five"]


def test_without_a_width_nothing_is_broken() -> None:
    assert wrapped("a " * 500, None) == ["a " * 500]


@given(NAMES, st.integers(4, 40))
def test_different_names_stay_different_and_fit(names: list[str], width: int) -> None:
    short = shortened(names, width)
    assert all(cells_of(name) <= width for name in short)
    assert len(set(short)) == len(set(names))
    for name, told in zip(names, short, strict=True):
        assert told == name or cells_of(name) > width or len(set(short)) < len(names) or "…" in told


def test_names_are_shortened_in_the_middle() -> None:
    assert shortened(["compress --level=1 file", "x"], 11) == ["compr… file", "x"]


def test_the_dots_move_where_names_differ_in_the_middle_only() -> None:
    names = [f"program --with-some-option={n} --another-long-option input" for n in ("alpha", "beta")]
    assert len(set(shortened(names, 20))) == 2
    assert all("…" in name and len(name) == 20 for name in shortened(names, 20))


def test_names_are_cut_on_both_sides_where_they_differ_in_the_middle() -> None:
    names = [f"compress --level={n} --input some/long/path" for n in (1, 9)]
    assert shortened(names, 16) == ["comp…el=1 --inp…", "comp…el=9 --inp…"]


def test_names_that_nothing_else_keeps_apart_are_numbered() -> None:
    names = [f"{'x' * 20}{a}{'y' * 20}{b}{'z' * 20}" for a in "12" for b in "12"]
    told = shortened(names, 8)
    assert len(set(told)) == 4
    assert all(len(name) == 8 for name in told)
    assert {name[-1] for name in told} == set("1234")


@given(
    NAMES,
    st.lists(st.tuples(WORDS, st.integers(0, 5)), max_size=8),
    st.integers(20, 200),
    st.booleans(),
)
def test_no_line_of_a_table_is_longer_than_the_width(
    names: list[str], heads: list[tuple[str, int]], width: int, every: bool
) -> None:
    columns = [Column(head, [f"{head}{n}" for n in range(len(names))], rank) for head, rank in heads]
    tables = table_lines([Column("name", names), *columns], width, every=every)
    lines = [line for table in tables for line in table]
    assert all(cells_of(line) <= width for line in lines)
    told = "".join("".join(lines).split())
    for column in columns:
        if every or column.rank == 0:
            assert all(cell in told for cell in column.cells), "what matters is never left out"


def test_what_matters_least_is_left_out_first() -> None:
    columns = [
        Column(head, ["1234567"], rank) for head, rank in (("mean", 0), ("median", 2), ("n", 1), ("max", 3))
    ]
    heads = [
        table_lines([Column("name", ["a"]), *columns], width)[0][0].split()[1:] for width in (60, 40, 30, 20)
    ]
    assert heads == [["mean", "median", "n", "max"], ["mean", "median", "n"], ["mean", "n"], ["mean"]]


def test_where_not_even_the_mean_fits_each_row_becomes_a_list() -> None:
    columns = [Column("mean", ["1,234.5 MiB/s"]), Column("95 %", ["1,230.1 … 1,238.9 MiB/s"])]
    (lines,) = table_lines([Column("rate", ["a"]), *columns], 30)
    assert lines == [
        " rate:",
        " a",
        "   mean  1,234.5 MiB/s",
        "   95 %  1,230.1 … 1,238.9",
        "     MiB/s",
    ] or (lines[:3] == [" rate:", " a", "   mean  1,234.5 MiB/s"])


def test_wide_characters_count_twice() -> None:
    (lines,) = table_lines([Column("name", ["日本", "abcd"]), Column("n", ["1", "2"])], None)
    assert [cells_of(line) for line in lines[2:]] == [cells_of(lines[0])] * 2
    assert cut("日本語", 4) == "日…"
