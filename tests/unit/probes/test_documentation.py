"""The example of docs/howto/extending.md works as it is printed, in both languages and from a script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from etude.engine import Engine, Launch, Worker
from etude.probes.executables import find_executables
from etude.probes.probe import Context
from etude.probes.run_probes import RunProbes, find_probe
from support.places import DOCS

DOCUMENT = DOCS / "howto" / "extending.md"
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A directory with the module, installed as its pyproject.toml says."""
    project = tomllib.loads(BLOCKS["toml"])["project"]
    (tmp_path / "tracesize.py").write_text(BLOCKS["python"])
    info = tmp_path / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("".join(points))
    return tmp_path


def executable(library: Path) -> Path:
    path = library / "probes.d" / "trace"
    path.parent.mkdir(parents=True)
    path.write_text(BLOCKS["sh"])
    path.chmod(0o755)
    return library


def twice(probing: RunProbes, directory: Path) -> list[tuple[dict[str, Any], dict[str, Any], list[str]]]:
    """Metrics, blocks and notes of two launches that each write 1000 bytes more."""
    found = []
    command = Worker(("sh", "-c", f"head -c 1000 /dev/zero >> {directory}/trace"))
    with Engine() as engine:
        context = Context(engine_pid=engine.pid, environment={"TESTDIR": str(directory)})
        for _ in range(2):
            probing.start(context)
            engine.launch(Launch((command,)))
            metrics, blocks, notes = probing.end(context)
            found.append((dict(metrics), {block.name: block.lines for block in blocks}, notes))
    return found


def check(found: list[tuple[dict[str, Any], dict[str, Any], list[str]]], directory: Path) -> None:
    assert len(found) == 2
    for number, (metrics, blocks, notes) in enumerate(found, 1):
        assert metrics["trace_size"] == [1000 * number, "B"]
        assert metrics["trace_growth"] == [1000, "B"]
        assert blocks == {"trace": (f"file = {directory}/trace",)}
        assert notes == []


def test_the_probe_in_python_measures_the_file(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed)
    try:
        check(twice(RunProbes(find_probe(["tracesize"])), installed), installed)
    finally:
        sys.modules.pop("tracesize", None)


def test_it_says_why_when_it_does_not_know_where_the_file_is(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed)
    monkeypatch.delenv("TESTDIR", raising=False)
    try:
        probing = RunProbes(find_probe(["tracesize"]))
    finally:
        sys.modules.pop("tracesize", None)
    probing.start(Context())
    metrics, _, _ = probing.end(Context())
    reason = "TESTDIR is not set, so there is no telling where the trace is"
    assert metrics["trace_size"] == [None, "B", reason]


def test_the_executable_measures_the_same(tmp_path: Path) -> None:
    check(twice(RunProbes(find_executables([executable(tmp_path / "mylib")])), tmp_path), tmp_path)


@pytest.mark.parametrize("kind", ["python", "executable"])
def test_a_script_has_it_in_its_results(installed: Path, kind: str) -> None:
    script = installed / "trace.ap"
    around = os.environ | {"TESTDIR": str(installed), "PYTHONPATH": str(installed)}
    if kind == "python":
        script.write_text(BLOCKS["text"])
    else:
        script.write_text(BLOCKS["text"].replace("VAR PROBES=tracesize\n", ""))
        around["APLIB"] = str(executable(installed / "mylib"))
    etude = str(Path(sys.executable).parent / "etude")
    command = [etude, "run", str(script), "-o", "results"]
    done = subprocess.run(command, cwd=installed, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = installed / "results" / "trace"
    lines = [json.loads(line) for line in (results / "results.jsonl").read_text().splitlines()]
    assert [line["metrics"]["trace_growth"] for line in lines] == [[40960, "B"]] * 3
    blocks = [json.loads(line) for line in (results / "blocks.jsonl").read_text().splitlines()]
    assert [(block["trial"], block["name"]) for block in blocks] == [(1, "trace"), (2, "trace"), (3, "trace")]


def test_the_document_names_what_there_is() -> None:
    text = DOCUMENT.read_text()
    for name in ("unavailable", "start", "end", "gives", *Context.__dataclass_fields__, "APPROBESTATE"):
        assert f"`{name}" in text or f", `{name}" in text, name
    numbers = (DOCUMENT.parent.parent / "reference" / "what-each-number-means.md").read_text()
    known = find_probe(["disk", "memory", "network", "interrupts", "energy", "others"])
    for probe in known:
        for metric in probe.gives:  # type: ignore[attr-defined]
            assert f"`{metric}`" in numbers, metric
