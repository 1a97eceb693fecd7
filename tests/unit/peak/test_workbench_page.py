"""docs/howto/workbench.md says what there is: its harness, policies, findings and options are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from etude.cli.verb_parsers import verb_parser
from etude.peak.harnesses.readers import TOOLS
from etude.peak.policies import POLICIES
from etude.peak.task import Kind
from support.places import DOCS, EXAMPLES

TEXT = (DOCS / "howto" / "workbench.md").read_text()


def test_the_harness_of_the_page_is_one(tmp_path: Path) -> None:
    spec = pytest.importorskip("etude.peak.harnesses.spec")
    text, apart, hosts = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "harness.toml").write_text(text)
    harness = spec.read_harness(tmp_path / "harness.toml")
    one = re.sub(r"^\[commands\].*?(?=^\[)", apart + "\n", text, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "apart.toml").write_text(one.replace("disks = 1\n", ""))
    assert (harness.nodes, spec.read_harness(tmp_path / "apart.toml").nodes) == (1, 2)
    (tmp_path / "hosts.toml").write_text('[hosts.a]\naddress = "10.0.0.1"\n')
    several = re.sub(r"^\[generator\].*", hosts, text, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "several.toml").write_text(several)
    assert [host.name for host in spec.read_harness(tmp_path / "several.toml").hosts] == ["a"]
    assert harness.name == "queue"
    assert [str(criterion) for criterion in harness.task.goal.criteria] == [
        "mean response ≤ 40 ms", "99 % of responses ≤ 250 ms", "errors ≤ 1 %"]  # fmt: skip
    assert (harness.task.lowest, harness.task.highest, harness.task.seed_load) == (50, 5000, 400)


def test_all_policies_readers_and_findings_are_named() -> None:
    for name in (*POLICIES, *TOOLS, *get_args(Kind)):
        assert f"`{name}`" in TEXT, name


def test_all_shipped_harnesses_are_in_the_table() -> None:
    shipped = {path.name for path in (EXAMPLES / "peak").glob("*.toml")}
    assert set(re.findall(r"`etude peak ([a-z-]+\.toml)` \|$", TEXT, re.MULTILINE)) == shipped


def test_all_options_that_are_named_are_options() -> None:
    known = {word for action in verb_parser("peak")._actions for word in action.option_strings}
    named = set(re.findall(r"`(?:etude peak [^`]*)?(--[a-z][a-z0-9.-]*)", TEXT))
    assert named - known <= {"--metric", "--cases", "--unconfirmed"}, named - known  # of other commands
    for option in (
        "--promise",
        "--within",
        "--confidence",
        "--budget",
        "--deadline",
        "--rehearse",
        "--calibrate",
    ):
        assert option in TEXT
