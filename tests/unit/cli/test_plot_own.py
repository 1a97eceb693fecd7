"""A search alone is drawn as its own figure, unless another is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.cli.main import main


@pytest.mark.parametrize(
    ("options", "kind"),
    [([], "readings-over-load"), (["--kind", "bars"], "bars"), (["--metric", "response"], "lines")],
    ids=["alone", "kind", "metric"],
)
def test_a_search_is_drawn_over_its_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], kind: str
) -> None:
    place, figure = str(tmp_path / "r"), tmp_path / "x.svg"
    assert main(["peak", "--simulate", "mm1:700", "-o", place]) == 0
    capsys.readouterr()
    assert main(["plot", place, *options, "-o", str(figure)]) == 0
    first, *notes = capsys.readouterr().out.splitlines()
    assert first.partition(":")[0] == kind
    assert figure.read_bytes().startswith(b"<?xml")
    assert any(note.strip().startswith("simulated") for note in notes) == (kind == "readings-over-load")


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own") / "r"
    assert main(["peak", "--simulate", "mm1:700", "--within", "0.2", "-o", str(place)]) == 0
    return place


@pytest.mark.parametrize(
    ("options", "title"), [([], "Simulated"), (["--title", "T"], "T (simulated)")], ids=["usual", "given"]
)
def test_the_figure_has_the_words_of_its_result_in_its_title(
    searched: Path, tmp_path: Path, options: list[str], title: str
) -> None:
    picture, data = tmp_path / "x.svg", tmp_path / "data"
    assert main(["plot", str(searched), *options, "--data", str(data), "-o", str(picture)]) == 0
    assert (data / "x.dat").read_text().splitlines()[0] == f"# {title}"
    assert f"<dc:title>{title}</dc:title>" in picture.read_text()


@pytest.mark.parametrize(
    "option",
    [("--log", "x"), ("--threshold", "1=a"), ("--mark", "1=a"), ("--bars", "none"), ("--confidence", "90")],
    ids=lambda option: option[0],
)
def test_an_option_that_it_does_not_have_is_refused(
    searched: Path, tmp_path: Path, option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["plot", str(searched), *option, "-o", str(tmp_path / "x.svg")]) == 2
    assert option[0] in capsys.readouterr().err
    assert not (tmp_path / "x.svg").exists()


def test_a_map_has_the_words_of_its_result_in_its_title(tmp_path: Path) -> None:
    place, data = tmp_path / "m", tmp_path / "data"
    main(["surface", "--simulate", "DB_TP", "--count", "4", "-o", str(place)])
    assert main(["plot", str(place), "--data", str(data), "-o", str(tmp_path / "x.svg")]) == 0
    assert "simulated" in (data / "x.dat").read_text().splitlines()[0].lower()
