"""Every command and every piece of Python in the guide runs as it is printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from etude.machine.quiet.table import BY_NAME
from etude.peak.harnesses.spec import read_harness
from etude.program import engine_path
from support.places import ROOT

pytestmark = pytest.mark.beside

BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_guide_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = 0
    for language, text in BLOCK.findall((ROOT / "docs" / "tutorials" / "guide.md").read_text()):
        if language == "python":
            commands = [[sys.executable, "-c", text]]
        else:
            commands = [["sh", "-c", line[2:]] for line in text.splitlines() if line.startswith("$ ")]
        for command in commands:
            done = subprocess.run(
                command,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, (command[-1], done.stdout[-2000:], done.stderr[-2000:])
            ran += 1
    assert ran > 10


def test_the_page_of_quiet_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ETUDE_QUIET_DIRECTORY": str(tmp_path / "ledger"),
    }
    page = (ROOT / "docs" / "howto" / "quiet.md").read_text()
    ((_, text),) = BLOCK.findall(page)
    for line in text.splitlines():
        done = subprocess.run(
            ["sh", "-c", line[2:]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir()), "looking changes nothing"
    named = re.findall(r"^\| `(\w+)` \| (?:yes|no|with)", page, re.MULTILINE)
    assert named == list(BY_NAME), "the page has each operation, in order"


def test_the_page_of_profiles_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    (text,) = (text for _, text in BLOCK.findall((ROOT / "docs" / "howto" / "profile.md").read_text()))
    for command in [line[2:] for line in text.splitlines() if line.startswith("$ ")]:
        words = ["sh", "-c", command]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode == 5:
            pytest.skip(f"programs cannot be recorded here: {done.stderr.strip()}")
        assert done.returncode == 0, (command, done.stderr)
    assert done.stdout.startswith("A: sh -c ")
    assert (tmp_path / "both.png").stat().st_size > 5000


def test_the_page_of_snapshots_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ((_, text),) = BLOCK.findall((ROOT / "docs" / "howto" / "snapshot.md").read_text())
    lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    assert len(lines) == 6
    for line in lines:
        words = ["sh", "-c", line]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode in ((0, 1) if "--fail-if" in line else (0,)), (line, done.stdout, done.stderr)


def test_the_page_of_surfaces_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    page = (ROOT / "docs" / "howto" / "surfaces.md").read_text()
    for name, text in re.findall(r"^```toml\n# (\S+\.toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    lines = [
        line[2:] for _, text in BLOCK.findall(page) for line in text.splitlines() if line.startswith("$ ")
    ]
    assert len(lines) == 4
    for line in lines:
        words = ["sh", "-c", line]
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == (1 if "db_tp" in line else 0), (line, done.stdout, done.stderr)
    assert (tmp_path / "db_tp-figures" / "surface.png").stat().st_size > 5000
    assert '"format": "etude-surface"' in (tmp_path / "sums.json").read_text()


def test_the_page_of_load_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    lines = [
        line[2:]
        for _, text in BLOCK.findall((ROOT / "docs" / "howto" / "load.md").read_text())
        for line in text.splitlines()
        if line.startswith("$ ")
    ]
    assert len(lines) == 5
    for line in lines:
        said = said_by(line, tmp_path, environment)
        if "--text" in line:
            assert said.startswith(("load ", "Note: "))
        elif "--seconds" in line:
            *windows, end = [json.loads(row) for row in said.splitlines()]
            seconds = int(re.findall(r"--seconds (\d+)", line)[0])
            assert [window["duration_s"] for window in windows] == [1.0] * seconds
            assert end["summary"]["failed"] == 0 < end["summary"]["completed"]
    assert [path.name for path in (tmp_path / "here").iterdir()] != []


def test_the_harness_of_the_page_of_load_is_one_and_its_command_offers(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (text,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "docs" / "howto" / "load.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "web.toml").write_text(text)
    harness = read_harness(tmp_path / "web.toml")
    assert (harness.name, harness.task.lowest, harness.task.highest) == ("web", 100, 20000)
    load = tomllib.loads(text)["commands"]["load"].format(place=tmp_path, load=100, runlength=1, seed=7)
    assert '"asked_rate":100.0' in said_by(load, tmp_path, environment)


def said_by(line: str, place: Path, environment: dict[str, str]) -> str:
    """What a command that has to succeed printed."""
    words = ["sh", "-c", line]
    done = subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr)
    return done.stdout


def test_the_pages_of_load_name_the_options_that_there_are_and_all_of_them() -> None:
    known: dict[str, set[str]] = {}
    for verb in ("load", "known-server"):
        told = subprocess.run(
            [engine_path(), verb, "--help"], capture_output=True, text=True, check=True
        ).stdout
        known[verb] = set(re.findall(r"--[a-z][a-z-]+", told)) - {"--help"}
    pages = {
        name: (ROOT / "docs" / f"{name}.md").read_text()
        for name in (
            "howto/load",
            "howto/file-load",
            "howto/nfs-load",
            "reference/workloads",
        )
    }
    elsewhere = {
        "--release",
        "--ignored",
        "--nocapture",
        "--operations",
        "--files",
        "--map",
    }  # of cargo, of bench/load/seen.py, and of etude script
    for name, text in pages.items():
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        assert named - known["load"] - known["known-server"] <= elsewhere, name
    assert [option for option in sorted(known["load"]) if option not in "".join(pages.values())] == []
    for other in ("workloads", "file-load", "nfs-load", "chain", "nfs-peak"):
        assert re.search(rf"\]\(([./a-z]+/)?{other}\.md\)", pages["howto/load"]), other


def test_links_between_the_documents_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
