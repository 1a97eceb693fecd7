"""Whatever a script says, it becomes a sound program or an error that points into one of its lines."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.script.parse import DIRECTIVES, parse_script, parse_text
from etude.script.program import Op, Program, ScriptError
from support.profiles import examples

# A block is (how it opens, its branches of lines and blocks); a line is a text.
Block = tuple[str, list[list[object]]]

OUTSIDE = [
    "ECHO %A% # x",
    "SYSTEM ls",
    "VAR A = 1",
    "VAREX B=%A% + 1",
    "ENV C=$HOME$",
    "ENVEX D=2*3",
    "EVAL %A%",
]
OUTSIDE += [
    "HOSTS %A%.toml",
    "COPY e @a,b:f",
    "SYSTEM @a g",
    "THREADS=2",
    "THREADS %A%",
    "FASTFAIL",
    "CHECKPOINT f \\\n # g",
    "STOP",
    "",
    "   # only a comment",
    "QUIET usual %CPUS%",
    "QUIET off",
]
INSIDE = [*OUTSIDE[:7], "PRESETUP a", "SETUP b \\\n c", "EXEC d", "CLEANUP e", "POSTCLEANUP f", "PURPOSE g"]
INSIDE += ["TIMEOUT 30s", "EXEC @a,b c", "SETUP @%A% d", "COPY @a:b", "COPY c @%A%:d"]
INSIDE += ["EXPECT h", "CACHE warm", "METRIC rate:B/s (\\d+)"]
LOOPS = ["FOREACH A b 'c d'", "FOREACH A", "FOR A=1 TO 4 FACTOR 2", "FOR A=%B% TO 0", "WHILE A !< 3"]
TESTS = ["TEST %A%-b 10", "TEST c 3 MAX=9 TIME=2m 1 getstats \\\n  --predicate '$delta < 1'", "TEST d %STOP%"]
CONDITIONS = ["A = b", "A!=", "A >= 3", "%A%"]


def blocks(draw: st.DrawFn, depth: int, inside: bool, interleaved: bool) -> list[object]:
    """Lines and blocks, nested as they may be."""
    found: list[object] = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.integers(0, 4 if depth else 0))
        if kind == 0:
            found.append(draw(st.sampled_from(INSIDE if inside else OUTSIDE)))
        elif kind == 1:
            found.append((draw(st.sampled_from(LOOPS)), [blocks(draw, depth - 1, inside, interleaved)]))
        elif kind == 2:
            branches = [blocks(draw, depth - 1, inside, interleaved) for _ in range(draw(st.integers(1, 3)))]
            found.append((draw(st.sampled_from(["IF", "IF with ELSE"])), branches))
        elif kind == 3 and not inside:
            found.append((draw(st.sampled_from(TESTS)), [blocks(draw, depth - 1, True, interleaved)]))
        elif kind == 4 and not inside and not interleaved:
            found.append(("INTERLEAVE", [blocks(draw, depth - 1, False, True)]))
    return found


@st.composite
def scripts(draw: st.DrawFn) -> list[object]:
    return blocks(draw, 3, False, False)


def written(parts: list[object], chance: random.Random) -> list[str]:
    """The lines of a script."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(" " * chance.randrange(3) + part)
            continue
        opener, branches = part  # type: ignore[misc]
        if not opener.startswith("IF"):
            lines += [opener, *written(branches[0], chance), "DONE # of it"]
            continue
        for place, branch in enumerate(branches):
            last = place == len(branches) - 1
            word = chance.choice(["ELSE IF", "ELSEIF", "ELSIF"]) if place else "IF"
            plain = last and place and opener == "IF with ELSE"
            lines.append("ELSE" if plain else f"{word} {chance.choice(CONDITIONS)}")
            lines += written(branch, chance)
        lines.append("FI")
    return lines


def compiled(parts: list[object], base: int) -> list[tuple[str, int]]:
    """What the program should be, by its nesting: each instruction with its target."""
    found: list[tuple[str, int]] = []
    for part in parts:
        here = base + len(found)
        if isinstance(part, str):
            words = part.replace("=", " ").split("#")[0].split()
            found += [(words[0], -1)] if words else []
            continue
        opener, branches = part  # type: ignore[misc]
        word = opener.split()[0]
        if word != "IF":
            body = compiled(branches[0], here + 1)
            end = here + 1 + len(body)
            if word in ("TEST", "INTERLEAVE"):
                found += [(word, end), *body, (f"END_{word}", here)]
            else:
                found += [(word, end + 1), *body, ("NEXT", here)]
            continue
        found += compiled_if(branches, opener == "IF with ELSE" and len(branches) > 1, here)
    return found


def compiled_if(branches: list[list[object]], has_else: bool, base: int) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for place, branch in enumerate(branches):
        last = place == len(branches) - 1
        condition = 0 if last and has_else else 1
        body = compiled(branch, base + len(found) + condition)
        if condition:
            found.append(("IF", base + len(found) + 1 + len(body) + (not last)))
        found += body
        if not last:
            found.append(("JUMP", -2))
    return [(word, base + len(found) if target == -2 else target) for word, target in found]


def check_sound(program: Program) -> None:
    """Every target is where it should be, every instruction has its line."""
    end = len(program.instructions)
    inside = False
    for index, instruction in enumerate(program.instructions):
        op, target = instruction.op, instruction.target
        assert 1 <= instruction.line <= len(program.lines[instruction.file])
        assert instruction.text == instruction.text.strip()
        if op in (Op.IF, Op.JUMP, Op.WHILE, Op.FOREACH, Op.FOR):
            assert index < target <= end
        if op in (Op.WHILE, Op.FOREACH, Op.FOR):
            assert program.instructions[target - 1].op is Op.NEXT
            assert program.instructions[target - 1].target == index
        if op in (Op.TEST, Op.INTERLEAVE):
            assert program.instructions[target].op == f"END_{op}"
            assert program.instructions[target].target == index
        if op in (Op.TEST, Op.END_TEST):
            inside = op is Op.TEST
        if op in (Op.EXEC, Op.SETUP, Op.METRIC):
            assert inside


def check_error(error: ScriptError, lines: list[str]) -> None:
    """One line, then the script's own line and a caret in it or just behind it."""
    message = str(error)
    assert "\n" not in message
    assert error.exit_code == 3
    if error.detail:
        shown, mark = error.detail.split("\n")
        number, column = int(shown[:6]), len(mark) - 9
        assert mark == " " * 7 + "| " + " " * (column - 1) + "^"
        assert message.startswith(f"script:{number}: ")
        assert shown[9:] == lines[number - 1].expandtabs(1)
        assert 1 <= column <= len(lines[number - 1]) + 1


def survives(text: str) -> None:
    """It becomes a program that is sound, or an error that is one."""
    wrong = None
    try:
        check_sound(parse_text(text))
    except ScriptError as error:
        wrong = error
    if wrong is not None:
        lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        check_error(wrong, lines)


@given(scripts(), st.randoms())
def test_a_script_becomes_the_program_that_its_nesting_says(
    parts: list[object], chance: random.Random
) -> None:
    program = parse_text("\n".join(written(parts, chance)))
    assert [(i.op.value, i.target) for i in program.instructions] == compiled(parts, 0)
    check_sound(program)


DAMAGE = [
    "FI",
    "DONE",
    "ELSE",
    "ELSE IF A=1",
    "IF",
    "TEST",
    "EXEC",
    "INTERLEAVE",
    "FOR",
    "\\",
    "#",
    "%",
    "$",
    "'",
]
DAMAGE += [
    "FASTFAIL x",
    "THREADS=",
    "CACHE cold",
    "QUIET loud",
    "INCLUDE nowhere",
    "OPTINCLUDE nowhere",
    "=",
    "\t",
    "\0",
    "é",
    "\r",
]


@settings(max_examples=examples(300))
@given(
    scripts(), st.randoms(), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=4)
)
def test_a_damaged_script_is_sound_or_says_where_it_is_not(
    parts: list[object], chance: random.Random, damage: list[tuple[float, int]]
) -> None:
    lines = written(parts, chance) or ["ECHO"]
    for share, how in damage:
        place = min(int(share * len(lines)), len(lines) - 1)
        if how == 0:
            del lines[place : place + 1]
            lines = lines or [""]
        elif how == 1:
            lines.insert(place, chance.choice(DAMAGE))
        elif how == 2:
            other = chance.randrange(len(lines))
            lines[place], lines[other] = lines[other], lines[place]
        else:
            at = chance.randrange(len(lines[place]) + 1)
            cut = chance.randrange(3) if how == 3 else 0
            lines[place] = lines[place][:at] + chance.choice(DAMAGE) + lines[place][at + cut :]
    survives("\n".join(lines))


@settings(max_examples=examples(300))
@given(st.text())
def test_any_text_is_a_program_or_an_error(text: str) -> None:
    survives(text)


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", " "]),
            st.sampled_from([*DIRECTIVES, "else", "THREADS=", "NEXT"]),
            st.text(st.sampled_from("A1 =<>!%$'\"\\#.-\t:+(é")),
        ).map("".join),
        max_size=8,
    ).map("\n".join)
)
def test_any_text_behind_the_directives_is_a_program_or_an_error(text: str) -> None:
    survives(text)


@given(st.binary() | st.text().map(str.encode), st.binary())
def test_any_files_are_a_program_or_an_error(main: bytes, included: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "main"
        (Path(directory) / "b").write_bytes(included)
        path.write_bytes(b"OPTINCLUDE b\n" + main)
        problem = ""
        try:
            check_sound(parse_script(path))
        except InputError as error:
            problem = str(error)
        assert "\n" not in problem
        assert not problem or problem.startswith(directory)


@pytest.mark.more
def test_long_lines_and_deep_nesting_take_no_longer_than_their_length() -> None:
    """These take milliseconds; what is not linear would take hours, or end in a RecursionError."""
    many = 100_000
    for text in (
        "FOREACH A " + "'" * (many - 1),
        "FOREACH A " + '"\\' * many,
        "FOREACH A " + "b\\ " * many,
        "IF " + "A" * many + " " * many + "~",
        "IF A" + " " * many + "!" * many,
        "FOR I=1 TO " + "1" * many,
        "FOR " + "= " * many,
        "TEST a " + "1" * many,
        "TEST a 1\nMETRIC a " + "(" * many + "\nDONE",
        "ECHO " + "%A" * many,
        "ECHO " + "$A" * many,
        "ECHO " + "\\#" * many + "# " * many,
        "ECHO " + "\\\n" * many + "x",
        "\\\n" * many,
        "IF A=1\n" * many,
        "FOREACH A b\n" * many + "DONE\n" * many,
        "IF A=1\n" + "ELSE IF A=2\n" * many + "FI",
        "z" * many,
    ):
        survives(text)
