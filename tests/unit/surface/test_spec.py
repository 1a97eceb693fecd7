"""SPEC.toml: what is read, and every error as one line that says where, what, and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.surface.spec import MetricOf, PeakOf, Spec, read_spec
from support.profiles import examples

COMMAND = """
[response]
command = "dd bs={bs} count={count}"
[factor.bs]
levels = [4, 1, 2]
scale = "log"
unit = "KiB"
[factor.count]
levels = ["many", "few"]
"""
QUOTA = '\n[factor.cpu]\nresource = "quota"\nlevels = [0.5, 1]\nscale = "log"\n'


@pytest.fixture
def spec(tmp_path: Path):  # type: ignore[no-untyped-def]
    def read(text: str) -> Spec:
        path = tmp_path / "spec.toml"
        path.write_text(text)
        return read_spec(path)

    return read


def test_a_command_over_two_factors(spec) -> None:  # type: ignore[no-untyped-def]
    found = spec(COMMAND)
    bs, count = found.space.factors
    assert (bs.name, bs.scale, bs.levels, bs.unit) == ("bs", "log", (1.0, 2.0, 4.0), "KiB")
    assert (count.scale, count.levels) == ("categorical", ("many", "few"))
    assert isinstance(found.response, MetricOf)
    assert (found.response.metric, found.response.unit, found.response.better) == ("elapsed", "s", "lower")
    assert (found.name, found.budget_s, found.cell_s, dict(found.resources)) == ("spec", None, None, {})
    assert (found.rules.plan, found.rules.count, found.rules.skip) == ("full", None, False)


def test_a_peak_with_a_resource_its_rules_and_its_budget(spec) -> None:  # type: ignore[no-untyped-def]
    found = spec(
        'name = "mine"\n[response]\npeak = "server.toml"\npolicy = "bracket"\n'
        + QUOTA
        + '[factor.fs]\nlevels = ["a", "b", "c"]\nscale = "ordered"\n'
        + '[samples]\nplan = "one-at-a-time"\nskip = true\nwithin = "5 %"\nconfidence = 0.9\nchecks = 3\n'
        + 'base = { cpu = 1, fs = "b" }\nwithout = [{ cpu = 0.5, fs = "c" }]\nseed = 7\n'
        + '[budget]\ntime = "2 h"\ncell = "3 min"\n'
    )
    assert found.response == PeakOf("server.toml", "bracket")
    assert found.space.size == 5
    assert (0, 2) not in set(found.space)
    assert (found.rules.base, found.rules.within, found.rules.confidence) == ((1, 1), 0.05, 0.9)
    assert (found.rules.checks, found.rules.seed, found.rules.skip) == (3, 7, True)
    assert (found.name, found.budget_s, found.cell_s) == ("mine", 7200.0, 180.0)
    assert found.resources["cpu"].name == "quota"


def test_a_resource_needs_not_be_named_by_the_command(spec) -> None:  # type: ignore[no-untyped-def]
    assert spec('[response]\ncommand = "true"\n' + QUOTA).resources


BAD = {
    "nothing": ("", 1, "[factor.NAME]"),
    "no response": (QUOTA, 1, "[response] peak, command, script"),
    "no factor": ('[response]\npeak = "a"\n', 1, "[factor.NAME]"),
    "no such key": (COMMAND + "[sample]\n", 10, "sample samples?"),
    "two responses": (COMMAND.replace("[resp", '[response]\npeak = "x"\n#'), 5, "peak command"),
    "no command": ('[response]\ncommand = " "\n' + QUOTA, 2, "command"),
    "a command with NUL": ('[response]\ncommand = "a\\u0000"\n' + QUOTA, 2, "command"),
    "a script's pattern": ('[response]\nscript = "a.ap"\npattern = "x"\n' + QUOTA, 3, "pattern"),
    "no script": ('[response]\nscript = "a.ap"\n' + QUOTA, 2, "a.ap"),
    "a metric of nothing": (
        COMMAND.replace("{count}\"", "{count}\"\nmetric = \"rate\""), 4, "metric 'rate': elapsed",
    ),
    "no expression": (COMMAND.replace("\n[factor.bs", '\npattern = "("\n[factor.bs'), 4, "expression"),
    "no group": (COMMAND.replace("\n[factor.bs", '\npattern = "x"\n[factor.bs'), 4, "(…)"),
    "better": (COMMAND.replace("\n[factor.bs", '\nbetter = "up"\n[factor.bs'), 4, '"higher" "lower"'),
    "no such policy": ('[response]\npeak = "a"\npolicy = "luck"\n' + QUOTA, 3, "'luck'"),
    "a command for all": ('[response]\ncommand = "true"\n[factor.n]\nlevels = [1]\n', 2, "factor"),
    "no levels": (COMMAND.replace("levels = [4, 1, 2]\n", ""), 4, "levels"),
    "empty": (COMMAND.replace("[4, 1, 2]", "[]"), 5, "levels []:"),
    "a level twice": (COMMAND.replace("[4, 1, 2]", "[4, 1, 4]"), 5, "levels 4"),
    "one that looks like another": (COMMAND.replace("[4, 1, 2]", "[1, 1.00000000000001]"), 5, "levels 1"),
    "mixed": (COMMAND.replace("[4, 1, 2]", '[4, "a"]'), 5, "numbers words"),
    "flags": (COMMAND.replace("[4, 1, 2]", "[true, false]"), 5, "numbers words"),
    "log of 0": (COMMAND.replace("[4, 1, 2]", "[0, 1]"), 5, "numbers 0"),
    "not finite": (COMMAND.replace("[4, 1, 2]", "[nan]"), 5, "numbers 0"),
    "no double": (COMMAND.replace("[4, 1, 2]", f"[{'9' * 400}]"), 5, "numbers 0"),
    "a number of 5000 digits": (f"a = {'9' * 5000}", 1, "Exceeds"),
    "lists in lists": (f"a = {'[' * 5000}", 1, ""),
    "a word of nothing": (COMMAND.replace('"few"', '" "'), 9, "words"),
    "a word of two lines": (COMMAND.replace('"few"', '"a\\nb"'), 9, "words"),
    "words with logs": (COMMAND + 'scale = "log"\n', 9, "log"),
    "a name": (COMMAND.replace("[factor.count]", '[factor."a b"]'), 8, "'a b'"),
    "a key of a resource": (COMMAND + "size = 3\n", 10, "size"),
    "no such resource": (QUOTA.replace('"quota"', '"luck"'), 2, "[factor.cpu]: 'luck'"),
    "a level of a resource": (QUOTA.replace("0.5", "1e-9"), 2, "[factor.cpu]:"),
    "no such plan": (COMMAND + '[samples]\nplan = "all"\n', 11, '"full", "in-order"'),
    "a design of any size": (COMMAND + '[samples]\nplan = "d-optimal"\n', 11, "d-optimal count"),
    "adaptive for ever": (COMMAND + '[samples]\nplan = "adaptive"\n', 11, "adaptive count, error"),
    "an error of all": (COMMAND + '[samples]\nerror = "5 %"\n', 11, "error adaptive, full"),
    "in order, but": (COMMAND + '[samples]\nplan = "in-order"\nskip = true\n', 12, "skip in-order"),
    "more than all": (COMMAND + "[samples]\ncount = 7\n", 11, "count 7: 6"),
    "checks below 1": (COMMAND + "[samples]\nchecks = -1\n", 11, "checks -1: whole 1"),
    "half a check": (COMMAND + "[samples]\nchecks = 1.5\n", 11, "checks 1.5: whole 1"),
    "a seed below 0": (COMMAND + "[samples]\nseed = -1\n", 11, "seed -1: whole 0"),
    "half a seed": (COMMAND + "[samples]\nseed = 1.5\n", 11, "seed 1.5: whole 0"),
    "half a cell": (COMMAND + "[samples]\ncount = 1.5\n", 11, "count 1.5:"),
    "part of a base": (
        COMMAND + '[samples]\nplan = "one-at-a-time"\nbase = { bs = 1 }\n', 12, "factor",
    ),
    "a base that is gone": (
        COMMAND + '[samples]\nplan = "one-at-a-time"\nwithout = [{bs=1}]\nbase = { bs = 1, count = "few" }\n', 13,
        "base without",
    ),
    "a base of nothing": (COMMAND + '[samples]\nbase = { bs = 1, count = "few" }\n', 11, "base one-at"),
    "without nothing": (COMMAND + "[samples]\nwithout = 3\n", 11, "tables"),
    "without whom": (COMMAND + "[samples]\nwithout = [{ x = 1 }]\n", 11, "'x',"),
    "without what": (COMMAND + "[samples]\nwithout = [{ bs = 3 }]\n", 11, "bs 3:"),
    "without all": (COMMAND + "[samples]\nwithout = [{}]\n", 11, "without"),
    "a share": (COMMAND + '[samples]\nwithin = "200 %"\n', 11, "share"),
    "no time": (COMMAND + '[budget]\ntime = "0 s"\n', 11, "[budget] time '0"),
    "no end": (COMMAND + '[budget]\ntime = "1e300 s"\n', 11, "366 d"),
    "no end of a cell": (COMMAND + '[budget]\ncell = "1e300 s"\n', 11, "366 d"),
    "no unit": (COMMAND + "[budget]\ncell = 7\n", 11, "unit"),
    "too many": (
        '[response]\npeak = "a"\n'
        + "".join(f"[factor.f{n}]\nlevels = {list(range(50))}\n" for n in range(3)), 1, "125,000 100,000",
    ),
    "no TOML": ("[response\n", 1, "TOML"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_one_line_with_its_place(name: str, spec) -> None:  # type: ignore[no-untyped-def]
    text, line, expected = BAD[name]
    with pytest.raises(InputError) as error:
        spec(text)
    _, place, said = str(error.value).partition(f"spec.toml:{line}: ")
    assert place, str(error.value)
    assert [word for word in expected.split() if word not in said] == []
    assert "\n" not in said


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: .*No such file"):
        read_spec(tmp_path / "none.toml")


WORDS = st.sampled_from(
    ["[response]", "[factor.a]", "[factor.b]", "[samples]", "[budget]", "[factor]", 'peak = "a"', 'command = "{a}"',
     "levels = [1, 2]", 'levels = ["x", "y"]', "levels = []", 'scale = "log"', 'resource = "quota"', "count = 1",
     'plan = "d-optimal"', "base = { a = 1 }", "without = [{ a = 1 }]", 'time = "1 s"', "skip = 1", "seed = 1e9",
     'resource = "volume"', "size = 3", "name = []", "response = 1", "factor = 2"]
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.one_of(st.text(), st.lists(WORDS, max_size=10).map("\n".join)))
@example('[response]\npeak = "a"\n[factor]\na.levels = [1, 2]\n')
def test_any_text_is_a_surface_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    found = said = None
    try:
        found = read_spec(path)
    except InputError as error:
        said = str(error)
    if found is None:
        assert said is not None
        assert said.startswith(str(path))
        assert "\n" not in said
    else:
        assert len(list(found.space)) == found.space.size > 0
        names = {found.space.name(cell) for cell in found.space}
        assert len(names) == found.space.size


def test_sizes_may_be_spaced_by_their_bytes(spec) -> None:  # type: ignore[no-untyped-def]
    text = '[response]\ncommand = "x {m}"\n[factor.m]\nlevels = ["1G", "64M", "256M"]\nscale = "log"\n'
    (memory,) = spec(text).space.factors
    assert memory.levels == ("64M", "256M", "1G")
    assert memory.coded().tolist() == pytest.approx([-1.0, 0.0, 1.0])
    with pytest.raises(InputError, match="levels"):
        spec(text.replace("64M", "small"))
