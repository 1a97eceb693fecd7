"""%NAME% and $NAME$: replaced once, by text, and everything else is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.script.directive_words import UndefinedVariable, compile_text

VARIABLES = {"FS": "ext2", "N": "4", "_a1": "", "STOP": "10 1 getstats --dump", "P": "%N% $HOME$ %%"}
ENVIRONMENT = {"HOME": "/root", "FS": "of the environment"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("no variables", "no variables"),
        ("%FS%", "ext2"),
        ("%FS%:%N%", "ext2:4"),
        ("%FS%%N%", "ext24"),
        ("[%_a1%]", "[]"),
        ("$HOME$/x", "/root/x"),
        ("%FS% $FS$", "ext2 of the environment"),
        ("TEST a %STOP%", "TEST a 10 1 getstats --dump"),
        ("%P%", "%N% $HOME$ %%"),
        ("100%", "100%"),
        ("100%%", "100%"),
        ("%%FS%%", "%FS%"),
        ("%%%FS%", "%ext2"),
        ("%FS%%%", "ext2%"),
        ("%FS %N%", "%FS 4"),
        ("% FS %", "% FS %"),
        ("%1FS%", "%1FS%"),
        ("%F-S%", "%F-S%"),
        ("$mean", "$mean"),
        ("$mean < $delta", "$mean < $delta"),
        ('("$delta" < 0.05 * $mean) || ($count > 30)', '("$delta" < 0.05 * $mean) || ($count > 30)'),
        ("$$", "$$"),
        ("$ HOME$ $HOME $", "$ HOME$ $HOME $"),
        ("$a $HOME$b", "$a /rootb"),
        ("sh -c 'echo $x' %N%", "sh -c 'echo $x' 4"),
    ],
)
def test_a_name_directly_between_two_signs_is_replaced(text: str, expanded: str) -> None:
    template = compile_text(text)
    assert template.expand(VARIABLES, ENVIRONMENT) == expanded
    assert template.is_static == (not template.holes)


@pytest.mark.parametrize(
    ("text", "name", "kind", "column"),
    [
        ("%X%", "X", "variable", 1),
        ("%HOME%", "HOME", "variable", 1),
        ("a %% %FS% %X%", "X", "variable", 11),
        ("$N$", "N", "environment", 1),
        ("$a$b$", "a", "environment", 1),
        ("date +%Y%m%d", "Y", "variable", 7),
    ],
)
def test_a_name_without_a_value_is_an_error_with_its_place(
    text: str, name: str, kind: str, column: int
) -> None:
    with pytest.raises(UndefinedVariable, match=rf"\b{name}\b") as error:
        compile_text(text).expand(VARIABLES, ENVIRONMENT)
    assert (error.value.name, error.value.kind, error.value.column) == (name, kind, column)


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PIECES = st.lists(
    st.tuples(st.just("text"), st.text(st.characters(exclude_characters="%$", codec="utf-8")))
    | st.tuples(st.just("percent"), st.just(""))
    | st.tuples(st.sampled_from(["variable", "environment"]), NAMES)
)


@given(PIECES, st.text())
def test_values_come_where_their_names_stand_and_are_not_looked_at_again(
    pieces: list[tuple[str, str]], value: str
) -> None:
    variables = {name: f"%{name}%{value}" for kind, name in pieces if kind == "variable"}
    environment = {name: f"${name}$%%{value}" for kind, name in pieces if kind == "environment"}
    text, expected = "", ""
    for kind, what in pieces:
        text += {"text": what, "percent": "%%", "variable": f"%{what}%", "environment": f"${what}$"}[kind]
        expected += {"text": what, "percent": "%"}.get(kind) or (
            variables if kind == "variable" else environment
        ).get(what, "")
    assert compile_text(text).expand(variables, environment) == expected


@given(st.text(st.sampled_from("%$ aA_0é\\")) | st.text())
def test_any_text_expands_or_names_what_is_missing(text: str) -> None:
    template = compile_text(text)
    missing = None
    try:
        template.expand({"A": "1"}, {"a": "2"})
    except UndefinedVariable as error:
        missing = error
    if missing is not None:
        sign = "%" if missing.kind == "variable" else "$"
        assert text[missing.column - 1 :].startswith(f"{sign}{missing.name}{sign}")
    if template.is_static:
        assert template.expand({}, {}) == text.replace("%%", "%")
