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
