"""The pages of peak rates say what there is: their harness, its keys, policies, findings and options are the code's."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

from etude.cli.verb_parsers import verb_parser
from etude.peak.harnesses import spec
from etude.peak.harnesses.readers import TOOLS
from etude.peak.policies import POLICIES
from etude.peak.task import Kind
from support.places import DOCS, EXAMPLES

HOWTO = (DOCS / "howto" / "peak.md").read_text()
HARNESS = (DOCS / "reference" / "harness.md").read_text()
SEARCH = (DOCS / "explanation" / "peak-search.md").read_text()
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_harnesses_of_the_pages_are_ones(tmp_path: Path) -> None:
    (text,) = TOML.findall(HARNESS)
    hosts, apart = TOML.findall(HOWTO)
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


def test_all_policies_and_findings_are_named() -> None:
    for name in (*POLICIES, *get_args(Kind)):
        assert f"`{name}`" in SEARCH, name


def test_all_readers_are_named() -> None:
    for name in TOOLS:
        assert f"`{name}`" in HARNESS, name


def test_all_shipped_harnesses_are_in_the_table() -> None:
    shipped = {path.name for path in (EXAMPLES / "peak").glob("*.toml")}
    assert set(re.findall(r"`etude peak ([a-z-]+\.toml)` \|$", HOWTO, re.MULTILINE)) == shipped


def test_all_options_that_are_named_are_options() -> None:
    known = {word for action in verb_parser("peak")._actions for word in action.option_strings}
    named = set(re.findall(r"`(?:etude peak [^`]*)?(--[a-z][a-z0-9.-]*)", HOWTO + HARNESS + SEARCH))
    assert named - known <= {"--metric", "--histogram", "--port"}, named - known  # of other commands
    for option in (
        "--promise",
        "--within",
        "--confidence",
        "--budget",
        "--deadline",
        "--rehearse",
        "--calibrate",
    ):
        assert option in HOWTO


def test_all_keys_of_a_harness_are_in_the_table() -> None:
    calls = [
        node for node in ast.walk(ast.parse(Path(spec.__file__).read_text())) if isinstance(node, ast.Call)
    ]
    keys = {
        word.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "only"
        for word in ast.walk(call)
        if isinstance(word, ast.Constant)
    }
    keys |= {*spec.WORDS, *(f"{name}_timeout" for name in ("ready", "load", "drain", "stop"))}
    assert {"lowest", "pieces", "accuracy", "hosts", "window"} <= keys
    named = {name.split(".")[0] for name in re.findall(r"`([a-z_.A-Z]+)`", HARNESS)}
    assert keys - named == set()
    assert [name for name in spec.SECTIONS[1:] if f"[{name}]" not in HARNESS] == []
    for reader in ("windows", "json", "regex", *TOOLS):
        assert f"| `{reader}` |" in HARNESS, reader
    for name in spec.PLACEHOLDERS:
        assert f"`{{{name}}}`" in HARNESS, name
