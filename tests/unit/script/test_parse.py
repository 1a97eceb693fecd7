"""Scripts to programs: what each directive becomes, and where it is wrong."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from etude.cli import main as cli
from etude.cli import verb_parsers
from etude.errors import InputError
from etude.script.parse import DIRECTIVES, parse_script, parse_text
from etude.script.program import Op, Program, ScriptError
from support.golden import Golden


def listed(program: Program) -> list[str]:
    """Instructions as `OP text @target`."""
    return [
        " ".join(filter(None, [i.op, i.text, f"@{i.target}" if i.target >= 0 else ""]))
        for i in program.instructions
    ]


def pointed(error: ScriptError) -> tuple[int, str]:
    """The line that an error shows, and what of it begins at the caret."""
    shown, mark = error.detail.split("\n")
    return int(shown[:6]), shown[mark.index("^") :]


# --- what directives become -----------------------------------------------------------------------

FIGURE = """\
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
"""


def test_the_figure_of_the_paper_is_a_flat_program() -> None:
    assert listed(parse_text(FIGURE)) == [
        "FOREACH FS ext2 ext3 reiserfs @10",
        "FOR THREADCOUNT=1 TO 32 FACTOR 2 @9",
        "THREADS %THREADCOUNT%",
        "TEST %FS%:%THREADS% 10 1 getstats --predicate "
        """'("$delta" < 0.05 * $mean) || ($count > 30)' @7""",
        "SETUP fs-setup.sh %FS%",
        "EXEC postmark.sh",
        "CLEANUP fs-cleanup.sh %FS%",
        "END_TEST @3",
        "NEXT @1",
        "NEXT @0",
    ]


@pytest.mark.parametrize(
    ("script", "instructions"),
    [
        ("", ""),
        ("ECHO", "ECHO"),
        ("ECHO  a  b ", "ECHO a  b"),
        ("ECHO\ta", "ECHO a"),
        ("SYSTEM ls", "SYSTEM ls"),
        ("EVAL 1 + 1", "EVAL 1 + 1"),
        ("STOP", "STOP"),
        ("VAR N=V", "VAR N=V"),
        ("VAR N = V W", "VAR N = V W"),
        ("VAR N=", "VAR N="),
        ("VAR %ASSIGNMENT%", "VAR %ASSIGNMENT%"),
        ("VAREX N=1 + %M%", "VAREX N=1 + %M%"),
        ("ENV N=V", "ENV N=V"),
        ("ENVEX N=2 * 3", "ENVEX N=2 * 3"),
        ("THREADS=4", "THREADS 4"),
        ("THREADS = 4", "THREADS 4"),
        ("THREADS =4", "THREADS 4"),
        ("THREADS= 4", "THREADS 4"),
        ("THREADS 4096", "THREADS 4096"),
        ("THREADS=%N%", "THREADS %N%"),
        ("FASTFAIL", "FASTFAIL"),
        ("FASTFAIL mail.sh me", "FASTFAIL mail.sh me"),
        ("CHECKPOINT %FILE%", "CHECKPOINT %FILE%"),
        ("IF A = 1\nECHO\nFI", "IF A = 1 @2|ECHO"),
        ("IF A = 1\nFI", "IF A = 1 @1"),
        ("IF A=1\nECHO 1\nELSE\nECHO 2\nFI\nSTOP", "IF A=1 @3|ECHO 1|JUMP @4|ECHO 2|STOP"),
        (
            "IF A=1\nECHO 1\nELSE IF A=2\nECHO 2\nELSEIF A=3\nELSIF A=4\nELSE\nECHO 5\nFI",
            "IF A=1 @3|ECHO 1|JUMP @11|IF A=2 @6|ECHO 2|JUMP @11|IF A=3 @8|JUMP @11|IF A=4 @10|JUMP @11|"
            "ECHO 5",
        ),
        ("IF A=1\nELSE IF A=2\nFI", "IF A=1 @2|JUMP @3|IF A=2 @3"),
        ("IF A=1\nIF B=2\nFI\nELSE\nFI", "IF A=1 @3|IF B=2 @2|JUMP @3"),
        ("WHILE A < 3\nECHO\nDONE\nSTOP", "WHILE A < 3 @3|ECHO|NEXT @0|STOP"),
        ("FOREACH A\nDONE", "FOREACH A @2|NEXT @0"),
        ("FOREACH A 'b c' %D%\nDONE", "FOREACH A 'b c' %D% @2|NEXT @0"),
        (
            "FOR A=1 TO 3\nFOR B=%A% TO 9 ADD %C%\nDONE\nDONE",
            "FOR A=1 TO 3 @4|FOR B=%A% TO 9 ADD %C% @3|NEXT @1|NEXT @0",
        ),
        (
            "INTERLEAVE\nTEST a 1\nDONE\nDONE",
            "INTERLEAVE @3|TEST a 1 @2|END_TEST @1|END_INTERLEAVE @0",
        ),
        (
            "TEST a 1\nPURPOSE p\nEXPECT e\nCACHE warm\nBOOT b\nREBOOT\nMETRIC r:B/s (\\d+)\nPRESETUP 1\nSETUP 2\n"
            "PRECONDITION x\nAGE ONCE /mnt\nFILL /mnt to=%L%\n"
            "EXEC 3\nCLEANUP 4\nPOSTCLEANUP 5\nVAR A=1\nFOR I=1 TO 2\nSYSTEM 6\nEXEC 7\n"
            "DONE\nCHECKPOINT f\nSTOP\nDONE",
            "TEST a 1 @22|PURPOSE p|EXPECT e|CACHE warm|BOOT b|REBOOT|METRIC r:B/s (\\d+)|PRESETUP 1|SETUP 2|"
            "PRECONDITION x|AGE ONCE /mnt|FILL /mnt to=%L%|EXEC 3|"
            "CLEANUP 4|POSTCLEANUP 5|VAR A=1|FOR I=1 TO 2 @20|SYSTEM 6|EXEC 7|NEXT @16|"
            "CHECKPOINT f|STOP|END_TEST @0",
        ),
    ],
)  # fmt: skip
def test_directives_become_instructions(script: str, instructions: str) -> None:
    assert "|".join(listed(parse_text(script))) == instructions


def test_instructions_know_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "a.ap").write_text("# first\nIF A=1\n\nINCLUDE b.inc\nELSE\n ECHO \\\n x\nFI\n")
    (tmp_path / "b.inc").write_text("\nECHO b\n")
    program = parse_script(tmp_path / "a.ap")
    assert program.path == str(tmp_path / "a.ap")
    assert [(i.op, Path(i.file).name, i.line) for i in program.instructions] == [
        (Op.IF, "a.ap", 2),
        (Op.ECHO, "b.inc", 2),
        (Op.JUMP, "a.ap", 5),
        (Op.ECHO, "a.ap", 6),
    ]
    assert program.lines[str(tmp_path / "b.inc")] == ("", "ECHO b")


def test_a_program_has_the_digest_of_all_its_lines() -> None:
    assert parse_text("ECHO a").digest != parse_text("ECHO a # b").digest
    assert parse_text("ECHO a").digest == parse_text("ECHO a", "other").digest


def test_blocks_may_be_opened_and_closed_in_included_files(tmp_path: Path) -> None:
    (tmp_path / "a.ap").write_text("TEST a 1\nINCLUDE body\nFOREACH B 1 2\nINCLUDE end\nDONE\n")
    (tmp_path / "body").write_text("SETUP s\nEXEC e\n")
    (tmp_path / "end").write_text("DONE\n")
    assert listed(parse_script(tmp_path / "a.ap"))[-1] == "END_TEST @0"
    (tmp_path / "end").write_text("FI\n")
    with pytest.raises(ScriptError, match=rf"end:1: FI .*FOREACH of {tmp_path}/a\.ap:3"):
        parse_script(tmp_path / "a.ap")


# --- what is wrong --------------------------------------------------------------------------------

LINES = ("PRESETUP", "SETUP", "EXEC", "CLEANUP", "POSTCLEANUP", "PURPOSE", "EXPECT")

# The script, the line that is shown, and what of it begins at the caret.
WRONG = [
    # directives
    ("NOSUCH a", 1, "NOSUCH a"),
    ("ECHO\nFOREACHE A b", 2, "FOREACHE A b"),
    ("ELSE-IF A=1", 1, "ELSE-IF A=1"),
    ("echo a", 1, "echo a"),
    ("  Include a", 1, "Include a"),
    ("Done", 1, "Done"),
    ("FS = ext2", 1, "FS = ext2"),
    ("NEXT", 1, "NEXT"),
    ("END_TEST", 1, "END_TEST"),
    ("JUMP 3", 1, "JUMP 3"),
    ("x" * 100_000, 1, "x" * 100_000),
    # arguments: too few, too many
    ("SYSTEM", 1, ""),
    ("SYSTEM # nothing", 1, " # nothing"),
    ("EVAL", 1, ""),
    ("CHECKPOINT", 1, ""),
    ("STOP now", 1, "now"),
    ("INTERLEAVE all\nDONE", 1, "all"),
    ("FOREACH A b\nDONE A", 2, "A"),
    ("IF A=1\nFI A", 2, "A"),
    ("IF A=1\nELSE ECHO a\nFI", 2, "ECHO a"),
    *(
        (f"TEST a 1\n {word}\nDONE", 2, "")
        for word in LINES
    ),
    # variables
    ("VAR", 1, ""),
    ("VAR N", 1, ""),
    ("VAR =1", 1, "=1"),
    ("VAR 1N=1", 1, "1N=1"),
    ("VAR  A B=1", 1, "A B=1"),
    ("ENV A-B=%C%", 1, "A-B=%C%"),
    ("ENV é=1", 1, "é=1"),
    ("VAREX N=", 1, ""),
    ("VAREX N", 1, ""),
    ("ENVEX 9=%A%", 1, "9=%A%"),
    # THREADS
    ("THREADS", 1, ""),
    ("THREADS=", 1, ""),
    ("THREADS=0", 1, "0"),
    ("THREADS 4097", 1, "4097"),
    ("THREADS = two", 1, "two"),
    ("THREADS=1 2", 1, "1 2"),
    ("THREADS=²", 1, "²"),
    # conditions
    ("IF", 1, ""),
    ("IF A\nFI", 1, ""),
    ("IF A 1\nFI", 1, "1"),
    ("IF 1 = 1\nFI", 1, "1 = 1"),
    ("IF  = 1\nFI", 1, "= 1"),
    ("IF A =< 1\nFI", 1, "=< 1"),
    ("IF A=>1\nFI", 1, "=>1"),
    ("IF A ! 1\nFI", 1, "! 1"),
    ("IF A <> %B%\nFI", 1, "<> %B%"),
    ("IF A=1\nELSE IF A\nFI", 2, ""),
    ("IF A=1\nELSIF = %A%\nFI", 2, "= %A%"),
    ("WHILE 1\nDONE", 1, "1"),
    # loops
    ("FOREACH", 1, ""),
    ("FOREACH 1 2\nDONE", 1, "1 2"),
    ("FOREACH A=b %C%\nDONE", 1, "A=b %C%"),
    ("FOREACH A b 'c\nDONE", 1, "'c"),
    ('FOREACH A b "c\\"\nDONE', 1, '"c\\"'),
    ("FOR\nDONE", 1, ""),
    ("FOR I\nDONE", 1, ""),
    ("FOR I 1 TO 3\nDONE", 1, "1 TO 3"),
    ("FOR I==1 TO 3\nDONE", 1, "=1 TO 3"),
    ("FOR I=1\nDONE", 1, ""),
    ("FOR I=1 to 3\nDONE", 1, "to 3"),
    ("FOR I=1 TO\nDONE", 1, ""),
    ("FOR I=1 TO x\nDONE", 1, "x"),
    ("FOR I=1 TO 1e3\nDONE", 1, "1e3"),
    ("FOR I=1 TO nan\nDONE", 1, "nan"),
    ("FOR I=1 TO 1234567890123456\nDONE", 1, "1234567890123456"),
    ("FOR I=1 TO 3 BY 2\nDONE", 1, "BY 2"),
    ("FOR I=1 TO 3 ADD\nDONE", 1, ""),
    ("FOR I=1 TO 3 ADD 1 2\nDONE", 1, "2"),
    ("FOR I=1 TO 3 ADD 0\nDONE", 1, "0"),
    ("FOR I=1 TO 3 ADD -1\nDONE", 1, "3 ADD -1"),
    ("FOR I=3 TO 1\nDONE", 1, "1"),
    ("FOR I=1 TO 3 FACTOR 1\nDONE", 1, "1"),
    ("FOR I=1 TO 3 FACTOR 1.0\nDONE", 1, "1.0"),
    ("FOR I=1 TO 3 FACTOR 0\nDONE", 1, "0"),
    ("FOR I=1 TO 3 FACTOR -2\nDONE", 1, "-2"),
    ("FOR I=1 TO 3 FACTOR 0.5\nDONE", 1, "3 FACTOR 0.5"),
    ("FOR I=3 TO 1 FACTOR 2\nDONE", 1, "1 FACTOR 2"),
    ("FOR I=3 TO 0 FACTOR 0.5\nDONE", 1, "0 FACTOR 0.5"),
    ("FOR I=0 TO 8 FACTOR 2\nDONE", 1, "0 TO 8 FACTOR 2"),
    ("FOR 1I=%A% TO 3\nDONE", 1, "1I=%A% TO 3"),
    ("FOR I=1 UNTIL %B%\nDONE", 1, "UNTIL %B%"),
    # TEST
    ("TEST\nDONE", 1, ""),
    ("TEST '' 1\nDONE", 1, "'' 1"),
    ("TEST a\nDONE", 1, ""),
    ("TEST a 0\nDONE", 1, "0"),
    ("TEST a ten\nDONE", 1, "ten"),
    ("TEST a 1.5\nDONE", 1, "1.5"),
    ("TEST a 1234567890\nDONE", 1, "1234567890"),
    ("TEST a " + "1" * 10_000 + "\nDONE", 1, "1" * 10_000),
    ("TEST a -3 %STOP%\nDONE", 1, "-3 %STOP%"),
    ("TEST a 10 1\nDONE", 1, ""),
    ("TEST a 10 1 ''\nDONE", 1, "''"),
    ("TEST a 10 0 true\nDONE", 1, "0 true"),
    ("TEST a 10 getstats\nDONE", 1, "getstats"),
    ("TEST a 10 MAX=9\nDONE", 1, "9"),
    ("TEST a 10 MAX=\nDONE", 1, ""),
    ("TEST a 10 MAX=20 MAX=30\nDONE", 1, "MAX=30"),
    ("TEST a 10 max=20\nDONE", 1, "max=20"),
    ("TEST a 10 TIME=soon\nDONE", 1, "soon"),
    ("TEST a 10 TIME=0s\nDONE", 1, "0s"),
    ("TEST a 10 1 getstats 'x\nDONE", 1, "'x"),
    ("TEST a 10 \\\n  1 getstats \\\n  'x\nDONE", 3, "'x"),
    ("TEST %FS% 10\n", 1, "TEST %FS% 10"),
    # QUIET
    ("QUIET cron", 1, "QUIET cron"),
    ("QUIET aslr=3", 1, "QUIET aslr=3"),
    ("QUIET shield", 1, "QUIET shield"),
    ("TEST a 1\nQUIET usual\nDONE", 2, "QUIET usual"),
    # CACHE and METRIC
    ("TEST a 1\nBOOT\nDONE", 2, ""),
    ("TEST a 1\nAGE\nDONE", 2, ""),
    ("TEST a 1\nAGE /mnt sed=1\nDONE", 2, "sed=1"),
    ("TEST a 1\nFILL ONCE /mnt\nDONE", 2, ""),
    ("TEST a 1\nPRECONDITION x trim=1\nDONE", 2, "1"),
    ("TEST a 1\nTIMEOUT\nDONE", 2, ""),
    ("HOSTS\n", 1, ""),
    ("COPY\n", 1, ""),
    ("TEST a 1\nCACHE remount\nDONE", 2, ""),
    ("TEST a 1\nCACHE\nDONE", 2, ""),
    ("TEST a 1\nCACHE cold\nDONE", 2, "cold"),
    ("TEST a 1\nCACHE Warm\nDONE", 2, "Warm"),
    ("TEST a 1\nMETRIC\nDONE", 2, ""),
    ("TEST a 1\nMETRIC rate\nDONE", 2, ""),
    ("TEST a 1\nMETRIC 9 x\nDONE", 2, "9 x"),
    ("TEST a 1\nMETRIC rate: x\nDONE", 2, "rate: x"),
    ("TEST a 1\nMETRIC rate:sum x\nDONE", 2, "rate:sum x"),
    ("TEST a 1\nMETRIC rate:s:max x\nDONE", 2, "rate:s:max x"),
    ("TEST a 1\nMETRIC elapsed x\nDONE", 2, "elapsed x"),
    ("TEST a 1\nMETRIC user %R%\nDONE", 2, "user %R%"),
    ("TEST a 1\nMETRIC r x(\nDONE", 2, "x("),
    ("TEST a 1\nMETRIC r a**\nDONE", 2, "**"),
    (f"TEST a 1\nMETRIC r {'(' * 9999}\nDONE", 2, "(" * 9999),
    ("TEST a 1\nMETRIC r a{2000}\nDONE", 2, "{2000}"),
    ("TEST a 1\nMETRIC r $.a..b\nDONE", 2, "$.a..b"),
    # what belongs into a TEST, and what does not
    *(
        (f"ECHO\n{word} warm", 2, f"{word} warm")
        for word in (*LINES, "CACHE", "METRIC")
    ),
    ("INTERLEAVE\nEXEC a\nDONE", 2, "EXEC a"),
    ("TEST a 1\nDONE\nEXEC a", 3, "EXEC a"),
    ("TEST a 1\nTEST b 1\nDONE\nDONE", 2, "TEST b 1"),
    ("TEST a 1\nFOR I=1 TO 2\nTEST b 1", 3, "TEST b 1"),
    ("TEST a 1\nINTERLEAVE\nDONE\nDONE", 2, "INTERLEAVE"),
    ("INTERLEAVE\nINTERLEAVE\nDONE\nDONE", 2, "INTERLEAVE"),
    ("TEST a 1\nFASTFAIL\nDONE", 2, "FASTFAIL"),
    ("TEST a 1\nTHREADS=2\nDONE", 2, "THREADS=2"),
    ("TEST a 1\nTHREADS 2\nDONE", 2, "THREADS 2"),
    # closers
    ("DONE", 1, "DONE"),
    ("ECHO\nFI", 2, "FI"),
    ("ELSE", 1, "ELSE"),
    ("ELSE IF A=1", 1, "ELSE IF A=1"),
    ("FOREACH A b\nFI", 2, "FI"),
    ("IF A=1\nDONE", 2, "DONE"),
    ("IF A=1\nTEST a 1\nELSE", 3, "ELSE"),
    ("TEST a 1\nIF A=1\nDONE", 3, "DONE"),
    ("IF A=1\nTEST a 1\nFI\nDONE", 3, "FI"),
    ("IF A=1\nWHILE B=1\nELSIF C=1", 3, "ELSIF C=1"),
    ("IF A=1\nELSE\nELSE\nFI", 3, "ELSE"),
    ("IF A=1\nELSEIF \nFI", 2, " "),
    ("IF A=1\nELSE\nELSE IF A=2\nFI", 3, "ELSE IF A=2"),
    ("\nIF A=1\nECHO", 2, "IF A=1"),
    ("IF A=1\nELSE IF A=2\nELSE", 1, "IF A=1"),
    ("FOREACH A b\nWHILE A=b\nDONE", 1, "FOREACH A b"),
    ("FOREACH A b\n  WHILE A=b", 2, "WHILE A=b"),
    ("INTERLEAVE", 1, "INTERLEAVE"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "line", "caret"),
    WRONG,
    ids=[case[0][:60] for case in WRONG],
)
def test_what_is_wrong_is_found_before_anything_runs(script: str, line: int, caret: str) -> None:
    with pytest.raises(ScriptError) as error:
        parse_text(script, "a.ap")
    assert str(error.value).startswith(f"a.ap:{line}: ")
    assert "\n" not in str(error.value)
    assert pointed(error.value) == (line, caret)
    assert error.value.exit_code == 3


def test_what_is_wrong_is_said_in_words(golden: Golden) -> None:
    said = []
    for script, _, _ in WRONG:
        with pytest.raises(ScriptError) as error:
            parse_text(script, "a.ap")
        said.append(f"{script[:60]!r} → {error.value}")
    golden("\n".join(said))


def test_each_directive_is_used_and_misused_above() -> None:
    wrong = "\n".join(case[0] for case in WRONG)
    for word in DIRECTIVES:
        if word not in (
            "ECHO",
            "INCLUDE",
            "OPTINCLUDE",
            "INCLUDEPATH",
            "REBOOT",
        ):  # ECHO takes all; tests/unit/script/test_source.py
            assert f"{word} " in wrong or f"{word}\n" in wrong, word


@pytest.mark.parametrize(
    "line",
    [
        "THREADS=%N%",
        "VAR %NAME%=1",
        "VAR foo %REST%=1",
        "ENV %A%",
        "VAREX %A%=1",
        "IF %NAME% = 1\nFI",
        "IF A %OP% 1\nFI",
        "IF A!%REST%\nFI",
        "IF %CONDITION%\nFI",
        "IF A = %B%\nFI",
        "FOR I=1 TO %N% FACTOR 1\nDONE",
        "FOR I=9 TO 1 %STEP%\nDONE",
        "FOR I=1 T%O% 3\nDONE",
        "FOR %LOOP%\nDONE",
        "FOREACH %NAME% a\nDONE",
        "FOREACH A '%B%\nDONE",
        "TEST %FS% 10 1\nDONE",
        "TEST a %STOP%\nDONE",
        "TEST a 10 %STOP%\nDONE",
        "TEST a 10 MAX=%N%\nDONE",
        "TEST a 10 MAX=2%N%\nDONE",
        "TEST 'a %B%\nDONE",
        "TEST a $MIN$\nDONE",
        "TEST a 1\nCACHE warm %X%\nDONE",
        "TEST a 1\nMETRIC %NAME% x\nDONE",
        "TEST a 1\nMETRIC name (a %REST%\nDONE",
    ],
)
def test_what_a_variable_may_mend_is_no_error_yet(line: str) -> None:
    assert parse_text(line).instructions


def test_a_percent_sign_written_twice_is_checked_as_one() -> None:
    parse_text("TEST a%%b 1\nDONE")
    with pytest.raises(ScriptError, match="found '1%'"):
        parse_text("THREADS=1%%")


def test_a_long_line_is_pointed_at_in_its_physical_line() -> None:
    with pytest.raises(ScriptError) as error:
        parse_text("TEST a \\ # name\n\t10 \\\n\tMAX=5 \\\n 1 true\nDONE", "x")
    assert str(error.value).startswith("x:3: TEST: ")
    assert "MIN, 10" in str(error.value)
    assert str(error.value).endswith("'5'")
    assert pointed(error.value) == (3, "5 \\")


def test_a_script_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"none\.ap: {os.strerror(errno.ENOENT)}"):
        parse_script(tmp_path / "none.ap")


def test_includes_are_looked_for_on_the_search_path(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "common.inc").write_text("ECHO common\n")
    (tmp_path / "a.ap").write_text("INCLUDE common.inc\n")
    assert listed(parse_script(tmp_path / "a.ap", [tmp_path / "lib"])) == ["ECHO common"]
    with pytest.raises(ScriptError, match=r"no file 'common\.inc'"):
        parse_script(tmp_path / "a.ap")


def test_the_command_line_prints_the_line_and_its_caret_below_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(options: object) -> int:
        parse_text("ECHO\n  FOR I=1 TO x\nDONE", "a.ap")
        return 0

    monkeypatch.setattr(verb_parsers, "verb_runner", lambda name: run)
    assert cli.main(["stats", "x"]) == 3
    first, *rest = capsys.readouterr().err.split("\n")
    assert first.startswith("etude: a.ap:2: FOR: ")
    assert first.endswith("'x'")
    assert rest == ["     2 |   FOR I=1 TO x", "       |              ^", ""]
