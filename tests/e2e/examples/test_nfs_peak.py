"""examples/nfs-peak: its files say what the paper asks for, and its scripts refuse what cannot be meant."""

from __future__ import annotations

import subprocess

import pytest

from etude.peak.harnesses.spec import read_harness
from etude.surface.spec import read_spec
from support.places import EXAMPLES

pytestmark = pytest.mark.beside


def test_the_criterion_is_the_papers() -> None:
    harness = read_harness(EXAMPLES / "nfs-peak" / "server.toml")
    (mean,) = [each for each in harness.task.goal.criteria if each.of == "mean"]
    assert mean.limit == 0.04
    assert harness.factors["preset"] in ("specsfs97", "web", "db_tp", "mail")


def test_the_surface_is_over_the_four_workloads_and_threads() -> None:
    surface = read_spec(EXAMPLES / "nfs-peak" / "surface.toml")
    names = {factor.name: list(factor.levels) for factor in surface.space.factors}
    assert names["preset"] == ["specsfs97", "web", "db_tp", "mail"]
    assert len(names["threads"]) >= 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected start, ready, load or stop"),
        (("begin", "/tmp/x"), "not 'begin'"),
        (("stop", "relative"), "expected an absolute path"),
        (("load", "/tmp/x", "1"), "expected nfs-peak.sh load PLACE"),
    ],
    ids=["nothing", "unknown", "relative", "few"],
)
def test_what_cannot_be_meant_is_one_line(words: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [EXAMPLES / "lib" / "nfs-peak.sh", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
