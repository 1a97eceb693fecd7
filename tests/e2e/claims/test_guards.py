"""What must not pass as a supported claim: skipped work, exchanged programs, results of others, edited verdicts."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from etude.api.claims import claims
from etude.api.claims_verification import verify_claims
from etude.claims.claims_file import FEW
from etude.claims.run import STATE
from etude.claims.stored_claims import read_stored
from etude.errors import InputError
from etude.present.bundle import gather
from etude.present.sections.claims_page import claims_markdown
from etude.results.bundle import write_bundle
from etude.stats.sequential import planned_looks
from support.real import etude

pytestmark = pytest.mark.beside

FILE = """\
[experiment.x]
trials = 10
{settings}
[experiment.x.commands]
{commands}
[claim.c]
text = "t"
hold = "{hold}"
"""


def written(
    place: Path, commands: dict[str, str], hold: str = "ratio(b/a) <= 100", settings: str = ""
) -> Path:
    path = place / "c.toml"
    lines = "\n".join(f"{name} = {json.dumps(line)}" for name, line in commands.items())
    path.write_text(FILE.format(settings=settings, commands=lines, hold=hold))
    return path


def decided(place: Path, *arguments: Any, **more: Any) -> tuple[str, str]:
    """Status of the claim, and what it lacks."""
    (result,) = claims(written(place, *arguments, **more), directory=place / "out").results
    return result.status, result.findings[0].lacking if result.findings else result.failed


def program(place: Path, name: str, text: str) -> str:
    (place / name).write_text(f"#!/bin/sh\n{text}")
    (place / name).chmod(0o755)
    return f"./{name}"


def test_output_of_the_first_run_alone_is_not_enough(tmp_path: Path) -> None:
    cheat = program(tmp_path, "cheat", "if mkdir cheated 2>/dev/null; then echo right; else echo wrong; fi\n")
    assert decided(tmp_path, {"a": "echo right", "b": cheat}) == ("refuted", "other work")


@pytest.mark.parametrize(("third", "status"), [("echo 1", "refuted"), ("echo 2", "supported")])
def test_any_two_tests_are_compared_and_not_only_with_the_first(
    tmp_path: Path, third: str, status: str
) -> None:
    commands = {"first": "echo 3", "a": "echo 2", "b": third}
    assert decided(tmp_path, commands)[0] == status


def test_a_baseline_that_varies_is_no_measure_of_others(tmp_path: Path) -> None:
    commands = {"a": program(tmp_path, "date", "date +%N\n"), "b": "echo 1"}
    assert decided(tmp_path, commands) == ("undecided", "varying output")


def test_a_program_that_is_exchanged_while_it_is_measured_ends_the_run(tmp_path: Path) -> None:
    base = program(tmp_path, "a", "echo 1\n")
    other = program(
        tmp_path,
        "b",
        "test -e a.new || { echo '#!/bin/sh' >a.new; echo 'sleep 0.01; echo 1' >>a.new; "
        "chmod +x a.new; cp a.new a; }\necho 1\n",
    )
    with pytest.raises(InputError, match="/a changed"):
        claims(written(tmp_path, {"a": base, "b": other}), directory=tmp_path / "out")
    assert read_stored(tmp_path / "out").results()[0].status == "undecided"


def test_results_without_their_state_are_not_adopted(tmp_path: Path) -> None:
    claims(written(tmp_path, {"a": "true", "b": "true"}), directory=tmp_path / "out")
    (tmp_path / "out" / STATE).unlink()
    with pytest.raises(InputError, match=r"claims\.json"):
        claims(written(tmp_path, {"a": "true", "b": "sleep 0.1"}), directory=tmp_path / "out")


def test_only_the_last_look_decides(tmp_path: Path) -> None:
    """An earlier one in claims.json cannot be computed again from the results."""
    commands = {"a": "sleep 0.01", "b": "sleep 0.03"}
    path = written(tmp_path, commands, "ratio(b/a) <= 1.2", "").with_name("d.toml")
    path.write_text((tmp_path / "c.toml").read_text().replace("trials = 10", "trials = 24"))
    (result,) = claims(path, directory=tmp_path / "out").results
    assert result.status == "refuted"
    state = json.loads((tmp_path / "out" / STATE).read_text())
    first = state["experiments"]["x"]["looks"][0]
    state["experiments"]["x"]["looks"].append(deepcopy(first) | {"trials": planned_looks(FEW, 24)[1]})
    first["evidence"]["c"] = [0.0, 1.0]
    (tmp_path / "out" / STATE).write_text(json.dumps(state))
    assert read_stored(tmp_path / "out").results()[0].status == "refuted"


@pytest.mark.parametrize(
    "edit",
    [
        lambda look: look.update(evidence={}),
        lambda look: look["evidence"].update(c=[-1.0, 1.0]),
        lambda look: look.update(trials=7),
    ],
    ids=["no evidence", "a negative p", "other trials"],
)
def test_an_edited_state_is_refused_in_one_line(tmp_path: Path, edit: Any) -> None:
    claims(written(tmp_path, {"a": "true", "b": "true"}), directory=tmp_path / "out")
    state = json.loads((tmp_path / "out" / STATE).read_text())
    edit(state["experiments"]["x"]["looks"][0])
    (tmp_path / "out" / STATE).write_text(json.dumps(state))
    done = etude("claims", "report", "out", "-o", "-", cwd=tmp_path, check=3)
    assert "claims.json" in done.stderr


def test_another_bundle_is_not_verified_into_the_same_directory(tmp_path: Path) -> None:
    bundles = []
    for number, line in enumerate(("true", "sleep 0.01")):
        place = tmp_path / str(number)
        place.mkdir()
        claims(written(place, {"a": "true", "b": line}), directory=place / "out")
        contents = gather([place / "out"])
        write_bundle(place / "b.tar", contents.root, contents.members, contents.time_s)
        bundles.append(place / "b.tar")
    verify_claims(bundles[0], directory=tmp_path / "ours")
    with pytest.raises(InputError, match="another directory"):
        verify_claims(bundles[1], directory=tmp_path / "ours")


def test_a_program_beside_the_file_is_packed(tmp_path: Path) -> None:
    commands = {"a": program(tmp_path, "p", "echo 1\n"), "b": "echo 1"}
    claims(written(tmp_path, commands), directory=tmp_path / "out")
    assert any(str(member.name).endswith("claims/p") for member in gather([tmp_path / "out"]).members)


def test_a_command_that_hangs_ends_with_its_budget(tmp_path: Path) -> None:
    assert decided(tmp_path, {"a": "true", "b": "sleep 1000"}, settings='budget = "1 s"')[0] == "undecided"


def test_what_a_file_switches_off_is_in_its_verdict(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": "echo 1", "b": "echo 2"}, settings='output = "any"\nsetup = "true # x"')
    path.write_text(f"confidence = 0.6\nmargin = 0\n{path.read_text()}")
    claims(path, directory=tmp_path / "out")
    text = claims_markdown(read_stored(tmp_path / "out"))
    for told in ("outputs are not compared in experiment x", "true # x", "60 %", "margin"):
        assert told in text


def test_a_trend_is_judged_after_all_planned_trials(tmp_path: Path) -> None:
    """A drift of 12 % over 60 trials is not told to be none after eleven of them."""
    drift = program(
        tmp_path,
        "drift",
        "n=$(cat n 2>/dev/null || echo 0)\necho $((n + 1)) >n\necho v $((100000 + 200 * n))\n",
    )
    path = written(tmp_path, {"a": drift}, "trend(v, a) == none", 'metrics.v = "v ([0-9]+)"')
    path.write_text(path.read_text().replace("trials = 10", "trials = 60"))
    (result,) = claims(path, directory=tmp_path / "out").results
    assert (result.status, result.trials) == ("refuted", 60)


@pytest.mark.parametrize("place", ["/dev/zero", "fifo"])
def test_an_input_that_is_no_file_is_named(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    written(tmp_path, {"a": "true", "b": "true"}, settings=f'inputs = "{place}"')
    assert place in etude("claims", "check", "c.toml", cwd=tmp_path, check=1).stdout
    assert place in etude("claims", "run", "c.toml", "-q", "-o", "o", cwd=tmp_path, check=3).stderr


def test_options_that_a_claims_file_cannot_state_are_named(tmp_path: Path) -> None:
    etude("bench", "--trials", "5", "-o", "r", "--input", "/etc/passwd", "cat", "sort", cwd=tmp_path)
    assert "--input" in etude("claims", "new", "r", cwd=tmp_path, check=3).stderr
