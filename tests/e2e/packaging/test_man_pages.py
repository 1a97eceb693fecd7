import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from support.places import ROOT

pytestmark = [pytest.mark.quick, pytest.mark.beside]

Tool = Callable[[str], ModuleType]


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser("etude", description="Runs programs again and again.\n\nMore of it.")
    verbs = whole.add_subparsers(title="commands")
    bench = verbs.add_parser(
        "bench",
        help="compare commands",
        description="Compares commands. A line may begin with a dot:\n.TP is text here.",
        epilog="'quoted' words may begin a line, too",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_argument("commands", nargs="+", metavar="CMD", help="what is run, at 95 %% confidence")
    bench.add_argument("--trials", type=int, default=3, help="how many (%(default)s)")
    verbs.add_parser("hidden", help=argparse.SUPPRESS)
    return whole


def test_there_is_a_page_for_the_whole_and_one_a_verb(tmp_path: Path, tool: Tool) -> None:
    written = tool("man_pages").write_pages(parser(), "1.2.3", tmp_path)
    assert sorted(path.name for path in written) == ["etude-bench.1", "etude.1"]
    whole = (tmp_path / "etude.1").read_text(encoding="utf-8")
    bench = (tmp_path / "etude-bench.1").read_text(encoding="utf-8")
    assert "compare commands" in whole
    assert "trials" not in whole
    assert r"\-\-trials" in bench
    assert "how many (3)" in bench
    assert r"etude\-bench \- compare commands" in bench


def test_verbs_beyond_the_parser_have_the_page_that_is_given(tmp_path: Path, tool: Tool) -> None:
    for _ in range(2):  # the second time they are there already
        tool("man_pages").write_pages(parser(), "1.2.3", tmp_path, {"etude-io": "a page\n"})
    assert (tmp_path / "etude-io.1").read_text() == "a page\n"
    assert (tmp_path / "etude-bench.1").exists()


def test_the_page_of_a_benchmark_is_its_own_help(tool: Tool) -> None:
    said = tool("man_pages").help_of("io")
    assert "create|read|write|describe" in said
    assert "--touch" in said


def test_pages_of_verbs_that_are_gone_are_removed_and_others_left(tmp_path: Path, tool: Tool) -> None:
    for name in ("etude-gone.1", "aptime.1"):
        (tmp_path / name).write_text("")
    tool("man_pages").write_pages(parser(), "1.2.3", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aptime.1", "etude-bench.1", "etude.1"]


def test_pages_do_not_change_with_the_day(
    tmp_path: Path, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for epoch in ("0", "1700000000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        tool("man_pages").write_pages(parser(), "1.2.3", tmp_path)
        texts.append((tmp_path / "etude-bench.1").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


@pytest.mark.needs_program("groff", package="groff-base")
def test_groff_formats_pages_without_a_complaint(tmp_path: Path, tool: Tool) -> None:
    for page in tool("man_pages").write_pages(parser(), "1.2.3", tmp_path):
        command = ["groff", "-K", "utf8", "-man", "-ww", "-T", "utf8", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        if "bench" in page.name:
            assert ".TP is text here." in done.stdout


@pytest.mark.needs_program("groff", package="groff-base")
def test_a_text_is_a_page_as_it_stands(tool: Tool) -> None:
    text = "usage: x\n\n.dotted and 'quoted'\n'quoted' a\\b --option\n"
    page = tool("man_pages").text_page("x", "does it", text, "1")
    command = ["groff", "-K", "utf8", "-man", "-ww", "-T", "utf8", "-P", "-c"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for line in (".dotted and 'quoted'", "'quoted' a\\b "):
        assert line in done.stdout


def test_the_pages_that_are_kept_are_those_of_this_command_line(tmp_path: Path) -> None:
    root = ROOT
    command = [sys.executable, str(root / "packaging" / "man_pages.py"), str(tmp_path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"COLUMNS": "57"})
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (root / "docs" / "man").iterdir()}
    assert made == kept, "run make man"


def test_every_page_that_is_kept_has_examples() -> None:
    pages = list((ROOT / "docs" / "man").iterdir())
    assert len(pages) > 30
    assert [page.name for page in pages if "\n.SH EXAMPLES\n" not in page.read_text()] == []
