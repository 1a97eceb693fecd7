"""`etude report`: where it writes, what it refuses."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from etude.cli.main import main
from etude.results.bundle import open_bundle, verify
from golden.corpus import lay_out
from support import pages


def test_the_page_goes_beside_the_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = pages.plain(tmp_path / "r")
    assert main(["report", str(directory)]) == 0
    assert (directory / "report.html").read_text().startswith("<!doctype html>")
    assert capsys.readouterr().out == f"Report: {directory}/report.html\n"


def test_markdown_and_latex_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = pages.plain(tmp_path / "r")
    assert main(["report", str(directory), "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## sorting")
    assert main(["report", str(directory), "--format", "latex"]) == 0
    assert r"\begin{tabular}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "begins"), [("a.md", "## "), ("a.tex", "% "), ("a.HTML", "<!doctype"), ("a", "<!d")]
)
def test_the_name_of_the_file_says_the_format(tmp_path: Path, name: str, begins: str) -> None:
    directory = pages.plain(tmp_path / "r")
    assert main(["report", str(directory), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text().startswith(begins)


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "a.pdf"),
        ("-o", "a.txt"),
        ("--format", "html", "-o", "a.md"),
        ("--format", "latex", "-o", "a.htm"),
    ],
)
def test_a_name_that_contradicts_the_format_is_refused(
    options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = pages.plain(tmp_path / "r")
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(directory), *options]) == 2
    assert not (tmp_path / options[-1]).exists()


def test_a_title_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = pages.plain(tmp_path / "r")
    assert main(["report", str(directory), "--format", "markdown", "--title", "Which sort?"]) == 0
    assert capsys.readouterr().out.startswith("## Which sort?")


@pytest.mark.parametrize("output", ["missing/page.html", "taken/page.html", "r"])
def test_a_target_that_cannot_be_written_is_one_line_and_leaves_nothing(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = pages.plain(tmp_path / "r")
    (tmp_path / "taken").write_text("a file")
    before = sorted(os.listdir(tmp_path)), sorted(os.listdir(directory))
    assert main(["report", str(directory), "-o", str(tmp_path / output)]) == 5
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"etude: {tmp_path / output}: ")
    assert (sorted(os.listdir(tmp_path)), sorted(os.listdir(directory))) == before


def test_a_page_that_is_replaced_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = pages.plain(tmp_path / "r")
    (directory / "report.html").write_text("the old one")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert main(["report", str(directory)]) == 5
    assert (directory / "report.html").read_text() == "the old one"
    assert not list(directory.glob(".report.html.*"))


def test_what_is_no_result_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / "empty")]) == 3
    assert main(["report", str(tmp_path / "missing")]) == 3
    assert main(["report", str(pages.plain(tmp_path / "r")), "--metric", "bandwidth"]) == 2
    assert main(["report", str(tmp_path / "r"), "--reference", "C"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("etude: ") for line in lines)


def test_a_bundle_is_read_and_its_page_goes_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = lay_out("bundles/two.tar.gz", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(bundle)]) == 0
    page = (bundle.parent / "report.html").read_text()
    with open_bundle(bundle) as found:
        assert all(f"{bundle}: {each.name}" in page for each in found)
        assert str(found[0].parent) not in page
    assert sorted(os.listdir(bundle.parent)) == ["report.html", bundle.name]
    assert main(["plot", str(bundle), "-o", "it.svg"]) == 0
    assert b"<svg" in Path("it.svg").read_bytes()


def test_a_page_does_not_go_into_an_unpacked_bundle(tmp_path: Path) -> None:
    packed = lay_out("bundles/two.tar.gz", tmp_path)
    with tarfile.open(packed) as tar:
        tar.extractall(tmp_path, filter="data")
        (name,) = {each.split("/")[0] for each in tar.getnames()}
    assert main(["report", str(tmp_path / name)]) == 0
    assert (tmp_path / "report.html").exists()
    assert verify(tmp_path / name) == []


@pytest.mark.parametrize("words", [("--metric", "user"), ("--reference", "x"), ("--same-within", "2%")])
def test_options_of_trials_are_refused_where_there_are_none(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(lay_out("replays/faithful.json", tmp_path)), *words]) == 2
    assert capsys.readouterr().err.split(": ")[1] == words[0]


def test_what_is_named_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = pages.plain(tmp_path / "r")
    load = lay_out("load/directory.jsonl", tmp_path)
    assert main(["report", str(directory), f"{directory}/"]) == 2
    assert main(["report", str(load), str(load)]) == 2
    assert main(["plot", "--kind", "before-after", str(directory), str(directory)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [f"{directory}/", str(load), str(directory)]
    assert not (directory / "report.html").exists()
