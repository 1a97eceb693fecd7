"""Files into logical lines: what is cut, joined and spliced in, and where each character was."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.script import source
from etude.script.program import ScriptError
from etude.script.source import error_at, read_lines, read_stored, read_text


def texts(script: str) -> list[str]:
    return [line.text for line in read_text(script, "script").lines]


def write(directory: Path, **files: str) -> Path:
    """Files by name (`__` for a slash, `_` at the end for `.inc`); returns the one called main."""
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory / "main"


def places(path: Path, *search: Path) -> list[tuple[str, str, int]]:
    found = read_lines(path, search).lines
    return [(line.text, os.path.relpath(line.file, path.parent), line.line) for line in found]


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("", []),
        ("\n \n\t\n", []),
        ("#!/usr/bin/env -S etude run\nSTOP", ["STOP"]),
        ("  ECHO a b  ", ["ECHO a b"]),
        ("ECHO a # b", ["ECHO a"]),
        ("ECHO a#b", ["ECHO a"]),
        (r"ECHO a\#b # c", ["ECHO a#b"]),
        (r"ECHO \# a \\# b", [r"ECHO # a \# b"]),
        ("ECHO 'a # b'", ["ECHO 'a"]),
        ("ECHO a \\\n  b", ["ECHO a b"]),
        ("ECHO a\\\nb", ["ECHO a b"]),
        ("ECHO a \\  \n b", ["ECHO a b"]),
        ("ECHO a \\ # comment\n b # comment\nSTOP", ["ECHO a b", "STOP"]),
        ("ECHO a # comment \\\nSTOP", ["ECHO a", "STOP"]),
        ("ECHO a \\\n\\\n\\\n b", ["ECHO a b"]),
        ("ECHO a \\\n\nSTOP", ["ECHO a", "STOP"]),
        ("ECHO a \\\n# comment\nSTOP", ["ECHO a", "STOP"]),
        ("\\\nECHO a", ["ECHO a"]),
        ("\\\n\nSTOP", ["STOP"]),
        ("ECHO a\r\nECHO \\\r\n b\r\n", ["ECHO a", "ECHO b"]),
        ("\ufeffECHO a", ["ECHO a"]),
        ("ECHO a\u2028b\x0bc\x85d\nSTOP", ["ECHO a\u2028b\x0bc\x85d", "STOP"]),
    ],
)
def test_comments_are_cut_and_lines_are_joined(script: str, lines: list[str]) -> None:
    assert texts(script) == lines


@pytest.mark.parametrize(
    ("script", "line", "column"),
    [
        ("EXEC awk '/^#/' f", 1, 13),
        ('METRIC a "x#([0-9]+)"', 1, 12),
        ("VAR A=1\nEXEC echo ${x#y}", 2, 14),
        ("EXEC echo a \\\n  'b # c'", 2, 6),
    ],
)
def test_a_comment_that_would_cut_quotes_is_an_error(script: str, line: int, column: int) -> None:
    with pytest.raises(ScriptError) as caught:
        read_text(script, "script")
    assert str(caught.value).startswith(f"script:{line}: ")
    *_, caret = caught.value.detail.split("\n")
    assert caret.index("^") - len("       | ") == column - 1
    assert read_stored({"script": script.split("\n")}).lines, "what was run once is read as it was then"


@pytest.mark.parametrize(
    "line",
    [
        "EXEC a # it's b's",
        "EXEC echo don't # can't",
        "EXEC echo 'a' # 'b'",
        r"EXEC awk '/^\#/' f",
        "ECHO 'a # b'",
    ],
)
def test_any_other_comment_is_cut(line: str) -> None:
    assert len(texts(line)) == 1


def test_a_file_beside_the_script_is_found_by_what_it_includes(tmp_path: Path) -> None:
    main = write(tmp_path / "mine", main="INCLUDE common.inc", **{"local.inc": "ECHO mine"})
    write(
        tmp_path / "lib",
        **{"common.inc": "OPTINCLUDE local.inc\nOPTINCLUDE other.inc", "other.inc": "ECHO lib"},
    )
    assert [text for text, _, _ in places(main, tmp_path / "lib")] == ["ECHO mine", "ECHO lib"]
    write(tmp_path / "lib", **{"local.inc": "ECHO theirs"})
    assert places(main, tmp_path / "lib")[0][0] == "ECHO theirs", "as ever: beside its includer first"


def test_a_line_is_numbered_by_its_first_physical_line() -> None:
    lines = read_text("\nECHO \\\n a\n# c\nSTOP", "x").lines
    assert [(line.text, line.file, line.line) for line in lines] == [("ECHO a", "x", 2), ("STOP", "x", 5)]


def test_carriage_returns_are_no_part_of_the_lines_that_messages_show() -> None:
    assert read_text("ECHO a\r\n\r\nSTOP", "x").files["x"] == ("ECHO a", "", "STOP")


def test_a_file_that_ends_behind_a_backslash_is_an_error() -> None:
    with pytest.raises(ScriptError, match=r"^script:2: .*backslash") as error:
        texts("ECHO \\\n  b \\ \n")
    assert error.value.detail.split("\n") == ["     2 |   b \\ ", "       |     ^"]


def test_files_are_spliced_in_where_they_are_included(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main="ECHO 1\nINCLUDE lib/a b.inc # comment\nECHO 4\n OPTINCLUDE  none\nINCLUDE \\\n c",
        **{"lib__a b.inc": "ECHO 2\nINCLUDE d", "lib__d": "\nECHO 3", "c": "ECHO 5"},
    )
    assert places(main) == [
        ("ECHO 1", "main", 1),
        ("ECHO 2", "lib/a b.inc", 1),
        ("ECHO 3", "lib/d", 2),
        ("ECHO 4", "main", 3),
        ("ECHO 5", "c", 1),
    ]


def test_a_file_is_looked_for_beside_its_includer_then_on_includepath_then_on_the_search_path(
    tmp_path: Path,
) -> None:
    main = write(
        tmp_path,
        main="INCLUDE sub/x",
        sub__x="INCLUDE y\nINCLUDEPATH p\nINCLUDEPATH ../q\nINCLUDE y\nINCLUDE z\nINCLUDE w",
        y="ECHO beside main",
        sub__p__z="ECHO p",
        q__y="ECHO q",
        q__z="ECHO not this one",
        s__y="ECHO s",
        t__w="ECHO t",
        t__y="ECHO not this one",
    )
    found = places(main, tmp_path / "s", tmp_path / "t")
    assert [text for text, _, _ in found] == ["ECHO s", "ECHO q", "ECHO p", "ECHO t"]


def test_includepath_counts_from_its_line_on_in_every_file(tmp_path: Path) -> None:
    main = write(tmp_path, main="INCLUDE a\nINCLUDE b", a="INCLUDEPATH d", d__b="ECHO b")
    assert [text for text, _, _ in places(main)] == ["ECHO b"]
    with pytest.raises(ScriptError, match="no file 'b'"):
        read_lines(write(tmp_path, main="INCLUDE b\nINCLUDE a"))


def test_an_absolute_name_is_taken_as_it_is(tmp_path: Path) -> None:
    main = write(tmp_path, main=f"INCLUDE {tmp_path}/b", b="ECHO b")
    assert read_lines(main).lines[0].file == f"{tmp_path}/b"
    with pytest.raises(ScriptError, match=r"'/nowhere/x'; .*/nowhere$"):
        read_text("INCLUDE /nowhere/x", "script")


def test_files_are_named_as_the_user_named_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, main="INCLUDE lib/../a", a="ECHO", lib__x="")
    monkeypatch.chdir(tmp_path)
    assert read_lines("main").lines[0].file == "lib/../a"
    assert read_lines("./main").lines[0].file == "./lib/../a"
    assert read_lines(Path("main"), [Path("q")]).lines[0].file == "lib/../a"
    assert set(read_lines("main").files) == {"main", "lib/../a"}


def test_what_a_text_includes_is_beside_nothing_but_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, script="ECHO file", sub__a="")
    monkeypatch.chdir(tmp_path)
    found = read_text("INCLUDE script\nECHO text", "script")
    assert [(line.text, line.file) for line in found.lines] == [
        ("ECHO file", "./script"),
        ("ECHO text", "script"),
    ]
    assert set(found.files) == {"script", "./script"}
    with pytest.raises(ScriptError, match=r"'a'; .* \.$"):
        read_text("INCLUDE a", "sub/name")


@pytest.mark.parametrize(
    ("line", "message", "caret"),
    [
        ("INCLUDE", "INCLUDE FILE", ""),
        ("OPTINCLUDE # x", "OPTINCLUDE FILE", " # x"),
        ("INCLUDEPATH", "INCLUDEPATH DIR", ""),
        ("INCLUDE %LIB%/x", "variables", "%LIB%/x"),
        ("OPTINCLUDE x/$HOME$/y", "variables", "$HOME$/y"),
        ("INCLUDEPATH \\\n %A%", "variables", "%A%"),
        ("INCLUDE 50%", "variables", "%"),
        ("INCLUDE none", " ., ./r, q, p", "none"),
        ("INCLUDE dir", "./dir: Is a directory", "dir"),
        ("OPTINCLUDE dir", "./dir: Is a directory", "dir"),
        ("INCLUDE " + "x" * 300, os.strerror(errno.ENAMETOOLONG), "x" * 300),
    ],
)
def test_an_include_that_cannot_be_meant_is_an_error_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str, caret: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    Path("main").write_text(f"INCLUDEPATH r\n\n  {line}\n")
    with pytest.raises(ScriptError) as error:
        read_lines("./main", [Path("q"), Path("p")])
    number = 4 if "\\" in line else 3
    assert str(error.value).startswith(f"./main:{number}: ")
    assert message in str(error.value)
    shown, mark = error.value.detail.split("\n")
    assert shown[mark.index("^") :] == caret


def test_a_file_that_includes_itself_is_an_error_that_names_the_chain(tmp_path: Path) -> None:
    main = write(tmp_path, main="INCLUDE a", a="ECHO\nINCLUDE b", b="OPTINCLUDE ./a")
    with pytest.raises(ScriptError, match=r"b:1: .*includes itself") as error:
        read_lines(main)
    chain = str(error.value).split("itself: ")[1].split(" includes ")
    assert [os.path.normpath(name) for name in chain] == [
        f"{tmp_path}/a",
        f"{tmp_path}/b",
        f"{tmp_path}/a",
    ]
    os.symlink(main, tmp_path / "link")
    main.write_text("INCLUDE link")
    with pytest.raises(ScriptError, match=r"itself: .*/main .*/link"):
        read_lines(main)


def test_a_file_may_be_included_twice(tmp_path: Path) -> None:
    main = write(tmp_path, main="INCLUDE a\nINCLUDE a", a="INCLUDE b", b="ECHO")
    assert [file for _, file, _ in places(main)] == ["b", "b"]


def test_files_that_double_each_other_are_an_error_before_the_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(source, "MAX_FILES", 1000)
        files = {f"a{n}": f"INCLUDE a{n + 1}\nINCLUDE a{n + 1}" for n in range(10)}
        with pytest.raises(ScriptError, match="1,000 files or 64 MiB"):
            read_lines(write(tmp_path, main="INCLUDE a0", a10="", **files))
    with monkeypatch.context() as patch:
        patch.setattr(source, "MAX_BYTES", 1 << 20)
        main = write(tmp_path, main="INCLUDE a\n" * 20, a="#" * (1 << 16))
        with pytest.raises(ScriptError, match=r"main:17: .*10,000 files or 1 MiB"):
            read_lines(main)
    deep = {f"a{n}": f"INCLUDE a{n + 1}" for n in range(99)}
    with pytest.raises(ScriptError, match="64 files"):
        read_lines(write(tmp_path, main="INCLUDE a0", a99="", **deep))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ECHO\n\nECHO a\0b", ":3: a NUL byte"),
        (b"ECHO\nECHO \xff", ":2: not UTF-8"),
        ("ECHO ü".encode("latin-1"), ":1: not UTF-8"),
        ("ECHO".encode("utf-16"), ":1: a NUL byte"),
    ],
)
def test_what_is_no_text_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(ScriptError) as error:
        read_lines(tmp_path / "bad")
    assert str(error.value).startswith(f"{tmp_path}/bad{message}")
    (tmp_path / "main").write_text("INCLUDE bad")
    with pytest.raises(ScriptError) as error:
        read_lines(tmp_path / "main")
    assert str(error.value).startswith(f"{tmp_path}/bad{message}")


def test_a_script_that_cannot_be_read_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=f"none: {os.strerror(errno.ENOENT)}"):
        read_lines(tmp_path / "none")
    with pytest.raises(InputError, match=f"{tmp_path}: {os.strerror(errno.EISDIR)}"):
        read_lines(tmp_path)
    monkeypatch.setattr(source, "MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="/dev/zero: larger than 1 MiB"):
        read_lines("/dev/zero")


def test_the_digest_changes_with_every_line_of_every_file(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        return read_lines(write(tmp_path, **files)).digest

    first = digest(main="INCLUDE a\n", a="ECHO 1\n")
    assert digest(main="INCLUDE a\n", a="ECHO 1\n") == first
    others = [
        digest(main="INCLUDE a\n", a="ECHO 2\n"),
        digest(main="INCLUDE a\n# note\n", a="ECHO 1\n"),
        digest(main="INCLUDE a\n", a="# note\nECHO 1\n"),
        digest(main="INCLUDE a\n\n", a="ECHO 1\n"),
    ]
    assert len({first, *others}) == 5
    assert len(first) == 64


PHYSICAL = st.lists(
    st.lists(st.sampled_from(["a", "é", " ", "\t", "#", "\\#", "\\", "bc", "%", "\xa0"]), max_size=8).map(
        "".join
    ),
    max_size=6,
)


@given(PHYSICAL)
def test_every_character_of_a_logical_line_is_found_where_it_was_written(physical: list[str]) -> None:
    found = read_text("\n".join([*physical, "end"]), "script")
    for text, file, line in found.lines:
        assert text == text.strip()
        before = (0, 0)
        for offset, character in enumerate(text):
            error = error_at(found.files, file, line, "x", text[offset:], 1)
            shown, mark = error.detail.split("\n")
            column = mark.index("^") - 9
            number = int(shown[:6])
            raw = found.files[file][number - 1]
            assert before < (number, column)
            before = (number, column)
            if character == "#":
                assert raw.startswith("\\#", column)
            elif column < len(raw) and raw[column] == character:
                continue
            else:
                assert character == " "
                assert "\\" in raw
