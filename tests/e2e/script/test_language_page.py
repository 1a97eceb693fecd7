"""docs/reference/language.md: each example is a whole script, runs, and prints what it says; no directive lacks one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from etude.script.parse import DIRECTIVES, INTERNAL, parse_script, parse_text
from etude.script.program import Op, ScriptError
from support.places import ROOT
from support.real import called

pytestmark = pytest.mark.beside

TEXT = (ROOT / "docs" / "reference" / "language.md").read_text()
BLOCK = re.compile(r"^```(?P<kind>ap|inc (?P<name>\S+))\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^##+ (.*)$", re.MULTILINE)
EXAMPLES = [match for match in BLOCK.finditer(TEXT) if match["kind"] == "ap"]
MOST_TRIALS = 3


def heading(example: re.Match[str]) -> str:
    """The last heading above an example; none for the first."""
    return ["", *HEADING.findall(TEXT[: example.start()])][-1]


def write(example: re.Match[str], directory: Path) -> Path:
    """The example as a script, beside all files that the document names."""
    for match in BLOCK.finditer(TEXT):
        if match["name"]:
            path = directory / match["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match["text"])
    script = directory / "example.ap"
    script.write_text(example["text"])
    return script


def prints(text: str) -> list[str]:
    """The lines that an example promises by its comments."""
    promised = re.findall(r"# prints (.*)$", text, re.MULTILINE)
    return [line.strip() for promise in promised for line in promise.split(" | ")]


@pytest.mark.parametrize("example", EXAMPLES, ids=[heading(example) for example in EXAMPLES])
def test_an_example_runs_and_prints_what_it_says(example: re.Match[str], tmp_path: Path) -> None:
    script = write(example, tmp_path)
    code = re.search(r"^# exit code (\d+)$", example["text"], re.MULTILINE)
    done = called("run", script.name, "-o", "results", cwd=tmp_path, check=int(code[1]) if code else 0)
    said = done.stdout.splitlines()
    assert [line for line in said if line in prints(example["text"])] == prints(example["text"])
    for results in (tmp_path / "results").glob("*/results.jsonl"):
        trials = {json.loads(line)["trial"] for line in results.read_text().splitlines()}
        assert len(trials - {0}) <= MOST_TRIALS


def test_every_directive_has_an_example_in_its_section(tmp_path: Path) -> None:
    shown: dict[str, set[str]] = {}
    for example in EXAMPLES:
        words = re.findall(r"^\s*([A-Z]+)", example["text"], re.MULTILINE)
        for named in re.findall(r"\b[A-Z]+\b", heading(example)):
            shown.setdefault(named, set()).update(words)
    used = {i.op for example in EXAMPLES for i in parse_script(write(example, tmp_path)).instructions}
    assert used >= set(Op) - INTERNAL
    for word in set(DIRECTIVES) - {"ELSE", "ELSEIF", "ELSIF", "FI", "DONE"}:
        assert word in shown.get(word, ()), f"{word}: no section with its name, or no example in it"


def test_links_within_the_document_lead_to_its_headings() -> None:
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(TEXT)}
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    assert set(links) <= anchors
    assert len(links) > 30


def test_the_error_is_printed_as_it_is() -> None:
    with pytest.raises(ScriptError) as error:
        parse_text("ECHO\nFOR I=3 TO 1\nDONE", "a.ap")
    assert f"```\netude: {error.value}\n{error.value.detail}\n```\n" in TEXT
