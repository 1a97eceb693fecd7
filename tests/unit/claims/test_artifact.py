"""Check lists of the badges, from what the files of an artifact show; and the claims files of examples/claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from etude.claims.artifact import checks_of, scales_of
from etude.claims.claims_file import read_claims
from etude.claims.run import VERSION, Measured, State
from etude.claims.stored_claims import StoredClaims
from etude.errors import UsageError
from support.places import EXAMPLES

FILE = """\
[experiment.e]
commands = { a = "COMMAND", b = "true" }
[experiment.e.small]
trials = 10
[claim.c]
text = "a is as fast as b"
hold = "ratio(elapsed, a/b) <= 1.1"
"""


def stored(tmp_path: Path, text: str) -> StoredClaims:
    path = tmp_path / "claims.toml"
    path.write_text(text)
    state = State(VERSION, "full", str(path), ["c"], text, {"e": Measured()})
    file = read_claims(path)
    return StoredClaims(tmp_path, file, file.claims, state)


def met(found: StoredClaims) -> dict[str, bool | None]:
    return {check.item: check.met for check in checks_of(found, found.results())}


def test_an_item_is_met_only_where_a_file_shows_it(tmp_path: Path) -> None:
    found = met(stored(tmp_path, FILE.replace("COMMAND", "sh work.sh")))
    assert found["archive"] is None
    assert found["license"] is False
    assert found["small example"] is False
    assert found["portable"] is True
    assert found["resources"] is False
    assert found["figures"] is False
    assert found["verdicts"] is False
    (tmp_path / "LICENSE").write_text("MIT")
    text = FILE.replace("e.small", "e.quick").replace('text = "a', 'figure = "Figure 1"\ntext = "a')
    found = met(stored(tmp_path, text.replace("COMMAND", "true")))
    assert found["license"] is True
    assert found["small example"] is True
    assert found["figures"] is True


@pytest.mark.parametrize(
    ("line", "bound"),
    [
        ("/home/me/prog x", "/home/me/prog"),
        ("cp /mnt/disk/a b", "/mnt/disk/a"),
        ("curl 10.1.2.3:80", "10.1.2.3"),
        ("/usr/bin/sort x", ""),
        ("curl 127.0.0.1:80", ""),
        ("prog ./home/x", ""),
    ],
)
def test_paths_and_addresses_of_the_authors_are_found(tmp_path: Path, line: str, bound: str) -> None:
    found = stored(tmp_path, FILE.replace("COMMAND", line))
    (check,) = (each for each in checks_of(found, found.results()) if each.item == "portable")
    assert (check.met, check.detail) == (not bound, bound)


def test_scales_are_tables_that_are_no_settings(tmp_path: Path) -> None:
    assert scales_of(stored(tmp_path, FILE)) == {"small"}


EXAMPLE_FILES = sorted((EXAMPLES / "claims").rglob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLE_FILES, ids=lambda path: path.stem)
def test_the_examples_are_valid_in_every_scale_and_name_what_runs_them(path: Path) -> None:
    file = read_claims(path)
    names = dict.fromkeys(claim.experiment for claim in file.claims)
    state = State(VERSION, "full", str(path), [], file.text, {name: Measured() for name in names})
    scales = scales_of(StoredClaims(path.parent, file, file.claims, state))
    for scale in scales:
        assert read_claims(path, scale).scale == scale
    with pytest.raises(UsageError, match="tiny"):
        read_claims(path, "tiny")
    assert re.search(rf"make|etude claims run {path.name}", path.read_text())


def test_there_is_an_example_of_each_paper() -> None:
    assert {"caches", "reboot", "linking", "seeding", "claims"} <= {path.stem for path in EXAMPLE_FILES}
