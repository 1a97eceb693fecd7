"""Every command and every piece of Python in the guide runs as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from etude.testbed.quiet.table import BY_NAME

pytestmark = pytest.mark.beside

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_guide_runs_as_it_is_printed(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = 0
    for language, text in BLOCK.findall((ROOT / "docs" / "guide.md").read_text()):
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
    page = (ROOT / "docs" / "quiet.md").read_text()
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
    (text,) = (text for _, text in BLOCK.findall((ROOT / "docs" / "profile.md").read_text()))
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
    ((_, text),) = BLOCK.findall((ROOT / "docs" / "snapshot.md").read_text())
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
    page = (ROOT / "docs" / "surfaces.md").read_text()
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


def test_links_between_the_documents_lead_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
