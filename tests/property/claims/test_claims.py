"""Bounds, claims files and states of any content are read, or refused with one line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.claims.bound import Bound, BoundError, contradiction, parse_bound
from etude.claims.claims_file import read_claims
from etude.claims.run import STATE, open_state
from etude.errors import EtudeError, InputError

WORDS = (
    "ratio",
    "mean",
    "equivalent",
    "trend",
    "peak",
    "best",
    "expect",
    "(",
    ")",
    ",",
    "/",
    '"',
    "A",
    "B",
    "elapsed",
)
SIGNS = ("<=", ">=", "==", "<", ">", "none", "1.3", "2 %", "5 ms", "-1", "1e400", "nan", " ", "\n", "é")
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS + SIGNS), max_size=14).map("".join))


@given(TEXTS)
def test_a_text_is_a_bound_or_is_refused(text: str) -> None:
    try:
        bound = parse_bound(text)
    except BoundError:
        return
    assert bound.low < bound.high
    assert contradiction([bound]) is None
    assert parse_bound(bound.text) == bound


NAMES = st.sampled_from(["A", "B", "two words", "x/y", "a,b", "(c)"])


@given(NAMES, NAMES, st.floats(0.01, 100.0))
def test_quoted_names_come_back_as_they_are(base: str, other: str, limit: float) -> None:
    if base != other:
        bound = parse_bound(f'ratio(elapsed, "{other}"/"{base}") <= {limit!r}')
        assert bound == Bound(bound.text, "ratio", "elapsed", (base, other), 0.0, limit)


KEYS = (
    *(
        "title",
        "confidence",
        "margin",
        "experiment",
        "claim",
        "x",
        "quick",
        "commands",
        "script",
        "peak",
        "surface",
    ),
    *(
        "replay",
        "simulate",
        "trials",
        "budget",
        "shell",
        "metrics",
        "primary",
        "output",
        "inputs",
        "needs",
        "disk",
    ),
    *("text", "hold", "figure", "regex", "unit", "variables", "cool", "data", "setup"),
)
VALUES = st.recursive(
    st.one_of(
        st.sampled_from(
            ['""', '"a b"', '"elapsed"', "0", "1", "20", "-3", "1.5", "nan", "inf", "true", '"5 %"', '"1 h"']
        ),
        st.sampled_from(
            ['"ratio(A/B) <= 1"', '"peak >= 3"', '"mm1:500"', '"a | b"', '"(["', "1979-05-27", '"\\u0000"']
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{', '.join(each)}]"),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=4).map(
            lambda each: "{" + ", ".join(f"{key} = {value}" for key, value in each.items()) + "}"
        ),
    ),
    max_leaves=8,
)
PATHS = st.sampled_from(
    ["experiment.x", "experiment.x.quick", "claim.x", "experiment", "claim", "experiment.y.commands"]
)


TABLES = st.dictionaries(PATHS, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5), max_size=4)


@given(TABLES, st.sampled_from(["full", "quick"]))
def test_a_claims_file_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, tables: dict[str, dict[str, str]], scale: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.toml"
    lines = [
        line
        for name, table in tables.items()
        for line in (f"[{name}]", *(f"{k} = {v}" for k, v in table.items()))
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    told = f"{path}: read"
    try:
        read_claims(path, scale)
    except EtudeError as error:
        told = str(error)
    assert told.startswith(str(path))
    assert "\n" not in told


MADE = """\
experiment.e.commands = { A = "true", B = "true" }
claim.c = { text = "t", hold = "ratio(B/A) <= 2" }
"""


@given(st.data())
def test_an_edited_state_is_refused_or_is_a_state(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = tmp_path_factory.getbasetemp() / "state"
    place.mkdir(exist_ok=True)
    (place / "c.toml").write_text(MADE)
    (place / STATE).unlink(missing_ok=True)
    file = read_claims(place / "c.toml")
    open_state(file, file.claims, place)
    document = json.loads((place / STATE).read_text())
    looks = data.draw(
        st.one_of(
            st.none(),
            st.lists(
                st.fixed_dictionaries(
                    {
                        "trials": st.sampled_from([11, 17, 3, -1, "11", None, 1e300]),
                        "evidence": st.sampled_from(
                            [
                                {"c": [0.1, 1.0]},
                                {"c": [2, -1]},
                                {"d": [0.1, 1.0]},
                                {},
                                [],
                                {"c": [float("nan"), 1]},
                            ]
                        ),
                    }
                ),
                max_size=3,
            ),
        )
    )
    document["experiments"]["e"]["looks"] = looks
    key = data.draw(st.sampled_from(["version", "claims", "scale", "text", "experiments", ""]))
    if key:
        document[key] = data.draw(st.sampled_from([None, 1, "x", [], {}, ["c"], {"e": {}}]))
    (place / STATE).write_text(json.dumps(document))
    try:
        found = open_state(file, file.claims, place).experiments["e"].looks
    except InputError:
        return
    assert [look.trials for look in found] == [11, 17, 26, 40, 60][: len(looks)]
    assert all(0 <= p <= 1 for look in found for p in look.evidence["c"])
