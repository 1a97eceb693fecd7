"""`etude claims`: verdicts, exit codes, resumed runs, and files made of results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from etude.claims.claims_file import read_claims
from support.fakes import World
from support.places import DOCS

SCHEMA = json.loads((DOCS / "reference" / "claims-schema.json").read_text("utf-8"))
EXPERIMENT = """\
[experiment.e]
commands = { a = "a", b = "b" }
trials = 20
"""
Etude = Callable[..., int]


@pytest.fixture(autouse=True)
def programs(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`a` and `b` on the PATH; the engine of the tests measures 10 and 12 ms for them."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("a", "b"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=":")
    return place


def claims_file(**holds: str) -> None:
    text = [f'[claim.{name}]\ntext = "{name}"\nhold = "{hold}"\n' for name, hold in holds.items()]
    Path("c.toml").write_text(EXPERIMENT + "".join(text))


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    return dict(found)


@pytest.mark.parametrize(
    ("holds", "code", "statuses"),
    [
        ({"x": "ratio(elapsed, b/a) <= 1.3"}, 0, ["supported"]),
        ({"x": "ratio(elapsed, b/a) <= 1.3", "y": "mean(elapsed, a) >= 20 ms"}, 1, ["supported", "refuted"]),
        (
            {"x": "ratio(elapsed, b/a) <= 1.3", "y": "ratio(elapsed, b/a) <= 1.2"},
            8,
            ["supported", "undecided"],
        ),
        ({"x": "equivalent(a, b, 2 %)"}, 1, ["refuted"]),
    ],
)
def test_the_exit_code_is_that_of_the_verdicts(
    holds: dict[str, str], code: int, statuses: list[str], etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    claims_file(**holds)
    assert etude("claims", "run", "c.toml", "-o", "r", "--json", "-q") == code
    found = document(capsys)
    assert [each["status"] for each in found["claims"]] == statuses  # type: ignore[attr-defined]


def test_a_decided_claim_takes_no_further_look_and_a_run_is_resumed(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    claims_file(x="ratio(elapsed, b/a) <= 1.3", y="ratio(elapsed, b/a) <= 1.2")
    assert etude("claims", "run", "c.toml", "-o", "r", "-q", "--budget", "1ns") == 8
    state = json.loads(Path("r/claims.json").read_text())
    assert [look["trials"] for look in state["experiments"]["e"]["looks"]] == [13]
    assert etude("claims", "run", "c.toml", "-o", "r", "-q") == 8
    state = json.loads(Path("r/claims.json").read_text())
    assert [look["trials"] for look in state["experiments"]["e"]["looks"]] == [13, 20]
    capsys.readouterr()
    assert etude("claims", "run", "c.toml", "x", "-o", "r", "-q") == 3
    claims_file(x="ratio(elapsed, b/a) <= 1.4")
    assert etude("claims", "run", "c.toml", "-o", "r", "-q") == 3
    assert "other claims" in capsys.readouterr().err


def test_a_program_that_changed_since_is_refused(
    programs: Path, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    claims_file(x="ratio(elapsed, b/a) <= 1.2")
    etude("claims", "run", "c.toml", "-o", "r", "-q", "--budget", "1ns")
    (programs / "b").write_text("#!/bin/sh\nexit 0\n")
    assert etude("claims", "run", "c.toml", "-o", "r", "-q") == 3
    assert str(programs / "b") in capsys.readouterr().err


def test_a_missing_program_leaves_its_claims_undecided(
    programs: Path, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    claims_file(x="ratio(elapsed, b/a) <= 1.3")
    (programs / "b").unlink()
    assert etude("claims", "check", "c.toml") == 1
    assert "c.toml:2" in capsys.readouterr().out
    assert etude("claims", "run", "c.toml", "-o", "r", "--json", "-q") == 8
    assert document(capsys)["claims"][0]["trials"] == 0  # type: ignore[index]


def test_a_check_names_the_cost_by_a_pilot(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    claims_file(x="ratio(elapsed, b/a) <= 1.3", y="ratio(elapsed, b/a) <= 1.2")
    assert etude("claims", "check", "c.toml") == 0
    etude("claims", "run", "c.toml", "-o", "r", "-q")
    capsys.readouterr()
    assert etude("claims", "check", "c.toml", "--pilot", "r") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["x", "e", "10"] in [row[:3] for row in rows]
    assert ["y", "e", "no", "number"] in [row[:4] for row in rows] or ["(of", "20)"] in [
        row[3:5] for row in rows
    ]


def test_unmet_needs_are_a_line_each(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    claims_file(x="ratio(elapsed, b/a) <= 1.3")
    needs = 'needs = { memory = "8000T", disk = "8000T", programs = ["no-such"], kernel = ["nosuchfs"] }\n'
    Path("c.toml").write_text(Path("c.toml").read_text().replace("trials = 20\n", "trials = 20\n" + needs))
    assert etude("claims", "check", "c.toml") == 1
    told = capsys.readouterr().out
    assert [name in told for name in ("memory", "disk", "no-such", "nosuchfs")] == [True] * 4


def test_claims_made_of_results_are_read_and_supported(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    etude("bench", "--trials", "12", "a", "b", "-o", "bench")
    etude("peak", "--simulate", "mm1:500", "-q", "-o", "peak")
    assert etude("claims", "new", "bench", "peak", "-o", "c.toml") == 0
    file = read_claims(Path("c.toml"))
    assert [(c.id, c.hold[0].of) for c in file.claims] == [("b-a", "ratio"), ("simulated-mm1-peak", "peak")]
    assert 1.0 < file.claims[0].hold[0].low < 1.2
    assert etude("claims", "new", "bench", "-o", "c.toml") == 2
    assert etude("claims", "new", ".") == 3
    capsys.readouterr()
    assert etude("claims", "run", "c.toml", "-o", "r", "--json", "-q") == 0
    assert [c["status"] for c in document(capsys)["claims"]] == ["supported"] * 2  # type: ignore[attr-defined]
