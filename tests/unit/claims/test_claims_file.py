"""A claims file is read in its scales, and each error has its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from etude.claims.check import problems
from etude.claims.claims_file import read_claims
from etude.claims.digests import NOT_MADE, changed, digests_of
from etude.errors import InputError, UsageError

FILE = """\
title = "Sorting"
[experiment.sorts]
commands.old = "sort -n numbers"
commands.new = "sort numbers"
metrics.lines = '([0-9]+) lines'
inputs = "numbers"
needs = { disk = "1M", programs = ["sort"] }
[experiment.sorts.quick]
trials = 20
commands.new = "sort -u numbers"
[claim.faster]
text = "new is faster"
hold = ["ratio(elapsed, new/old) <= 0.9"]
figure = "Figure 3"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return path


def test_a_program_that_the_set_up_builds_is_not_missing(tmp_path: Path) -> None:
    """It has its digest once it is there, and is compared from then on."""
    built = FILE.replace("metrics.", "commands.built = './built x'\nsetup = 'make built'\nmetrics.", 1)
    (tmp_path / "numbers").write_text("2\n1\n")
    file = read_claims(written(tmp_path, built))
    experiment = file.experiments["sorts"]
    assert list(problems(file, experiment)) == []
    before = digests_of(experiment)
    assert before[str(tmp_path / "built")] == NOT_MADE
    (tmp_path / "built").write_text("#!/bin/sh\n")
    after = digests_of(experiment)
    assert changed(before, after) == []
    (tmp_path / "built").write_text("#!/bin/sh\n:\n")
    assert changed(after, digests_of(experiment)) == [str(tmp_path / "built")]
    without = read_claims(written(tmp_path, built.replace("./built", "./nosuch").replace("setup", "cleanup")))
    found = [str(each) for each in problems(without, without.experiments["sorts"])]
    assert [each.partition(": ")[0] for each in found] == [f"{tmp_path}/c.toml:3"]


def test_an_error_in_a_scale_has_its_line(tmp_path: Path) -> None:
    for old, new, line in (
        ("trials = 20", "trials = 2", 9),
        ("trials = 20", 'setup = "x"\nbudget = "a while"', 10),
        ("trials = 20", 'needs = { disk = "much" }', 9),
        ("trials = 20", 'metrics.lines = "("', 9),
        ('commands.new = "sort -u numbers"', "[experiment.sorts.quick.metrics]\nlines = '('", 11),
    ):
        with pytest.raises(InputError) as raised:
            read_claims(written(tmp_path, FILE.replace(old, new)), "quick")
        assert str(raised.value).partition(": ")[0] == f"{tmp_path}/c.toml:{line}", new


def test_a_scale_replaces_what_it_names(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    full, quick = read_claims(path), read_claims(path, "quick")
    assert full.experiments["sorts"].trials == 60
    assert quick.experiments["sorts"].trials == 20
    assert dict(quick.experiments["sorts"].commands) == {"old": "sort -n numbers", "new": "sort -u numbers"}
    assert (full.title, full.confidence, full.margin) == ("Sorting", 0.95, 0.01)
    assert [(c.id, c.line, c.figure, c.experiment) for c in full.claims] == [
        ("faster", 11, "Figure 3", "sorts")
    ]
    assert full.experiments["sorts"].needs.disk == 1 << 20
    assert full.experiments["sorts"].inputs == (tmp_path / "numbers",)
    assert [test.directory for test in full.experiments["sorts"].tests()] == [str(tmp_path)] * 2


CASES = {
    "an unknown result": ("ratio(elapsed, new/old) <= 0.9", "mean(latency, new) <= 1 ms", 13),
    "a test that there is not": ("new/old) <= 0.9", "newer/old) <= 0.9", 13),
    "a unit that does not fit": ('ratio(elapsed, new/old) <= 0.9"', 'mean(elapsed, new) <= 5 MB"', 13),
    "a number for a time": ('ratio(elapsed, new/old) <= 0.9"', 'mean(elapsed, new) <= 5"', 13),
    "contradictory bounds": ('<= 0.9"', '<= 0.9", "ratio(elapsed, new/old) >= 1"', 13),
    "a peak of commands": ("ratio(elapsed, new/old) <= 0.9", "peak >= 10", 13),
    "an EXPECT of commands": ("ratio(elapsed, new/old) <= 0.9", "expect", 13),
    "no bound": ("ratio(elapsed, new/old) <= 0.9", "new is faster", 13),
    "no text": ('text = "new is faster"\n', "", 11),
    "an unknown experiment": ("figure =", 'experiment = "others"\nfigure =', 14),
    "a list as an experiment": ("figure =", "experiment = []\nfigure =", 14),
    "a misspelt table": (
        "[experiment.sorts.quick]",
        "[experiment.sorts.metrcs]\nlines = '1'\n[experiment.sorts.quick]",
        9,
    ),
    "two kinds": ("inputs =", 'script = "a.ap"\ninputs =', 2),
    "a command for a shell": ("sort -n numbers", "sort -n numbers | head", 3),
    "an invalid regex": ("([0-9]+) lines", "([0-9]+ lines", 5),
    "too few trials": ("trials = 20", "trials = 5", 9),
    "no claims": (FILE[FILE.index("[claim") :], "", 1),
    "a confidence of nothing": ('title = "Sorting"', "confidence = 0.2", 1),
    "a margin of false": ('title = "Sorting"', "margin = false", 1),
    "an odd id": ("[claim.faster]", '[claim."a b"]', 11),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_has_its_line(name: str, tmp_path: Path) -> None:
    old, new, line = CASES[name]
    assert old in FILE
    path = written(tmp_path, FILE.replace(old, new))
    scale = "quick" if "trials" in old else "full"
    with pytest.raises(InputError) as caught:
        read_claims(path, scale)
    assert "\n" not in str(caught.value)
    found = re.match(rf"{re.escape(str(path))}:(\d+): ", str(caught.value))
    assert found is not None
    assert int(found[1]) == line


def test_a_scale_or_an_id_that_does_not_exist_is_an_error_of_usage(tmp_path: Path) -> None:
    path = written(tmp_path, FILE)
    with pytest.raises(UsageError, match=r"'slow'.*full, quick"):
        read_claims(path, "slow")
    with pytest.raises(UsageError, match=r"'slower'.*faster"):
        read_claims(path).chosen(("slower",))
