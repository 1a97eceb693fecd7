"""Claims bundled here and run again: checksums, forged verdicts, other inputs, and what a refuted claim names."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from etude.api.claims import claims
from etude.api.claims_verification import verify_claims
from etude.claims.run import STATE
from etude.claims.stored_claims import SOURCES, read_stored
from etude.errors import InputError
from etude.present.appendix import appendix
from etude.present.bundle import gather
from etude.present.sections.claims_page import claims_page
from etude.present.sections.verification import verification_document
from etude.results.bundle import write_bundle
from etude.results.packing import SUMS
from support.real import etude

pytestmark = pytest.mark.beside

FILE = """\
title = "Waiting"
[experiment.waits]
trials = 10
inputs = ["wait.sh", "{outside}"]
setup = "touch made"
cleanup = "rm -f made"
[experiment.waits.commands]
short = "sh wait.sh 0.01 {outside}"
long = "sh wait.sh 0.1 {outside}"
[experiment.prints]
trials = 10
[experiment.prints.commands]
first = "sh -c 'echo first'"
second = "sh -c 'echo second'"
[claim.longer]
experiment = "waits"
text = "The long wait takes more than 1.5 times the short one"
hold = "ratio(elapsed, long/short) >= 1.5"
figure = "Figure 1"
[claim.alike]
text = "Both print the same, as quickly"
experiment = "prints"
hold = "ratio(elapsed, second/first) <= 100"
"""
WAIT = 'sleep "$1"\nsleep "$(cat "$2")"\n'


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `outside`, an input elsewhere; `claims.toml` and `wait.sh` in `source`; results in `run`."""
    here = tmp_path_factory.mktemp("claims")
    (here / "outside").write_text("0\n")
    (here / "source").mkdir()
    (here / "source" / "wait.sh").write_text(WAIT)
    file = here / "source" / "claims.toml"
    file.write_text(FILE.replace("{outside}", str(here / "outside")))
    claims(file, directory=here / "run", scale="full")
    contents = gather([here / "run"])
    write_bundle(here / "bundle.tar.gz", contents.root, contents.members, contents.time_s)
    return here


@pytest.fixture
def unpacked(measured: Path, tmp_path: Path) -> Path:
    """The bundle as a directory that a test may change."""
    with tarfile.open(measured / "bundle.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path / "run-bundle"


def sum_again(root: Path) -> None:
    """Make the checksums fit files that were changed."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n"
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != SUMS
    ]
    (root / SUMS).write_text("".join(lines))


def test_a_program_that_prints_something_else_refutes_a_comparison(measured: Path) -> None:
    found = {r.claim.id: r for r in read_stored(measured / "run").results()}
    assert found["alike"].status == "refuted"
    assert found["alike"].findings[0].lacking == "other work"
    assert found["longer"].status == "supported"


def test_a_bundle_has_the_claims_their_inputs_and_every_experiment(measured: Path) -> None:
    with tarfile.open(measured / "bundle.tar.gz") as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {
        "claims.json",
        "appendix.md",
        "claims/claims.toml",
        "claims/wait.sh",
        "results/waits/experiment.json",
        "results/prints/experiment.json",
    } <= names
    assert not any("outside" in name for name in names)
    assert str(measured / "outside") in gather([measured / "run"]).left_out


def test_an_input_that_changed_is_neither_packed_nor_resumed(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured / "source", tmp_path / "source")
    shutil.copytree(measured / "run", tmp_path / "run")
    state = json.loads((tmp_path / "run" / STATE).read_text())
    text = json.dumps(state).replace(str(measured / "source"), str(tmp_path / "source"))
    (tmp_path / "run" / STATE).write_text(text)
    gather([tmp_path / "run"])
    (tmp_path / "source" / "wait.sh").write_text(f"{WAIT}# faster\n")
    with pytest.raises(InputError, match=r"wait\.sh"):
        gather([tmp_path / "run"])
    with pytest.raises(InputError, match=r"wait\.sh"):
        claims(tmp_path / "source" / "claims.toml", directory=tmp_path / "run")


def test_both_results_stand_side_by_side(measured: Path, tmp_path: Path) -> None:
    announced = []
    found = verify_claims(measured / "bundle.tar.gz", directory=tmp_path / "ours", announce=announced.append)
    assert announced == [found.differences]
    assert [(v.claim.id, v.theirs.status, v.ours.status) for v in found.claims] == [
        ("longer", "supported", "supported"),
        ("alike", "refuted", "refuted"),
    ]
    (bound,) = found.claims[0].bounds
    assert bound.same_direction is True
    assert bound.change is not None
    assert bound.ours is not None
    assert bound.theirs is not None
    assert bound.change.value == pytest.approx(bound.ours.value / bound.theirs.value)
    assert found.claims[1].bounds[0].change is None
    assert found.files == ()
    assert not [d for d in found.differences.differs if d.what.startswith(("program", "directory.path"))]
    again = verify_claims(measured / "bundle.tar.gz", directory=tmp_path / "ours")
    assert again.claims[0].ours.trials == found.claims[0].ours.trials
    shown = verification_document(found.claims, found.differences, found.files, found.scales)
    assert (
        json.loads(json.dumps(shown, allow_nan=False))["claims"][0]["bounds"][0]["change"]["low"] is not None
    )


def test_a_claim_refuted_here_names_the_input_that_differs(measured: Path, tmp_path: Path) -> None:
    (measured / "outside").write_text("0.4\n")
    try:
        found = verify_claims(measured / "bundle.tar.gz", directory=tmp_path / "ours")
    finally:
        (measured / "outside").write_text("0\n")
    assert found.claims[0].theirs.status == "supported"
    assert found.claims[0].ours.status != "supported"
    (other,) = found.files
    assert other.name == str(measured / "outside")
    assert other.theirs != other.ours
    page = found.page()
    assert page.index('id="verdicts"') < page.index('id="claim-longer"') < page.index('id="differs"')
    assert page.count("data:image/svg+xml") == 1
    assert str(measured / "outside") in page[page.index('id="claim-longer"') : page.index('id="claim-alike"')]


def test_an_altered_bundle_is_refused(unpacked: Path) -> None:
    (unpacked / SOURCES / "wait.sh").write_text("true\n")
    with pytest.raises(InputError, match=r"wait\.sh"):
        verify_claims(unpacked)


def test_checksums_made_again_do_not_hide_another_input(unpacked: Path) -> None:
    (unpacked / SOURCES / "wait.sh").write_text("true\n")
    sum_again(unpacked)
    with pytest.raises(InputError, match=r"claims/wait\.sh"):
        verify_claims(unpacked)


def test_a_forged_verdict_is_found_by_its_results(unpacked: Path) -> None:
    state = json.loads((unpacked / STATE).read_text())
    for look in state["experiments"]["prints"]["looks"]:
        look["evidence"]["alike"] = [0.0, 1.0]
    (unpacked / STATE).write_text(json.dumps(state))
    sum_again(unpacked)
    with pytest.raises(InputError, match="alike"):
        verify_claims(unpacked)


@pytest.mark.parametrize(
    ("old", "new"), [('"waits": {', '"../waits": {'), ('"longer"', '"shorter"')], ids=["experiment", "claim"]
)
def test_a_state_that_does_not_fit_its_claims_file_is_no_traceback(
    unpacked: Path, old: str, new: str
) -> None:
    text = (unpacked / STATE).read_text()
    assert old in text
    (unpacked / STATE).write_text(text.replace(old, new, 1))
    sum_again(unpacked)
    with pytest.raises(InputError, match=r"claims\.json"):
        verify_claims(unpacked)


def test_a_bundle_of_other_results_holds_no_claims(measured: Path, tmp_path: Path) -> None:
    contents = gather([measured / "run" / "waits"])
    write_bundle(tmp_path / "b.tar", contents.root, contents.members, contents.time_s)
    done = etude("claims", "verify", "b.tar", cwd=tmp_path, check=3)
    assert "b.tar" in done.stderr


def test_the_exit_code_is_that_of_our_verdicts(measured: Path, tmp_path: Path) -> None:
    bundle = str(measured / "bundle.tar.gz")
    done = etude(
        "claims", "verify", bundle, "-o", "ours", "--json", "--page", "p.html", cwd=tmp_path, check=1
    )
    assert (tmp_path / "p.html").stat().st_size > 10_000
    assert [c["ours"] for c in json.loads(done.stdout)["claims"]] == ["supported", "refuted"]
    etude("claims", "report", "ours", cwd=tmp_path)
    assert (tmp_path / "ours" / "report.html").stat().st_size > 10_000


def test_the_page_has_the_verdicts_first_and_a_figure_for_each_measured_claim(measured: Path) -> None:
    page = claims_page(read_stored(measured / "run"))
    assert page.index('id="verdicts"') < page.index('id="claim-longer"') < page.index('id="claim-alike"')
    assert page.count("data:image/svg+xml") == 1


@pytest.mark.parametrize("form", ["md", "latex"])
def test_the_appendix_has_each_claim_command_and_input(measured: Path, form: str) -> None:
    text = appendix(read_stored(measured / "run"), form)
    for part in ("longer", "alike", "Figure 1", "wait.sh", "claims verify", "(C2", "(E2"):
        assert part in text
