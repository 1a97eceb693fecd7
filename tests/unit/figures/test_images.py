"""Every kind of figure looks as it did when somebody looked at it.

`ETUDE_NEW_PICTURES=1 .venv/bin/pytest tests/unit/figures/test_images.py` writes them
anew: look at each before you keep it.
"""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from etude.figures.data import Bars, Figure
from etude.figures.save import render
from etude.figures.style import Style
from support.places import DATA

BASELINE = DATA / "figures"

TOLERANCE = 0.04
"""Root mean square of the differences in grey, 1 being black against white: other versions of the libraries move the
edges of letters by parts of a pixel."""


def pixels(picture: bytes | Path) -> Any:
    """Grey from 0 to 1."""
    with Image.open(io.BytesIO(picture) if isinstance(picture, bytes) else picture) as image:
        return np.asarray(image.convert("L"), dtype=np.float64) / 255.0


def difference(one: Any, other: Any) -> float:
    if any(abs(a - b) > 2 for a, b in zip(one.shape, other.shape, strict=True)):
        return 1.0
    rows, columns = (min(a, b) for a, b in zip(one.shape, other.shape, strict=True))
    return float(np.sqrt(np.mean((one[:rows, :columns] - other[:rows, :columns]) ** 2)))


def test_it_looks_as_it_did(example: Any, tmp_path: Path) -> None:
    picture, said = render(example.figure, "png", example.style)
    assert said == []
    kept = BASELINE / f"{example.name}.png"
    if os.environ.get("ETUDE_NEW_PICTURES"):
        Image.open(io.BytesIO(picture)).convert("RGB").convert(
            "P", palette=Image.Palette.ADAPTIVE, colors=64
        ).save(kept, optimize=True)
    found = difference(pixels(picture), pixels(kept))
    if found > TOLERANCE:
        (tmp_path / "now.png").write_bytes(picture)
    assert found <= TOLERANCE, f"compare {tmp_path}/now.png with {kept}"


def changed(figure: Figure) -> Figure:
    """One bar of the first panel is higher by a fifth."""
    panel, *others = figure.panels
    layers = list(panel.layers)
    for place, layer in enumerate(layers):
        if isinstance(layer, Bars):
            first, *rest = layer.boxes
            layers[place] = replace(layer, boxes=(replace(first, top=first.top * 1.2), *rest))
            break
    return replace(figure, panels=(replace(panel, layers=tuple(layers)), *others))


def test_the_tolerance_finds_one_bar_that_is_another(tmp_path: Path) -> None:
    from etude.figures.plot import make
    from etude.figures.plot_options import PlotOptions
    from etude.figures.sources import read_samples

    data = DATA / "postmark"
    wish = PlotOptions(metrics=("elapsed", "system", "user"))
    figure = make(
        "bars", read_samples([str(data / f"{n}.res") for n in ("ext2:1", "ext4:1", "xfs:1")], wish), wish
    )
    picture, _ = render(changed(figure), "png", Style(dots=100))
    assert difference(pixels(picture), pixels(BASELINE / "bars.png")) > TOLERANCE


@pytest.mark.parametrize("kind", ["svg", pytest.param("png", marks=pytest.mark.more)])
def test_the_same_figure_is_the_same_file(example: Any, kind: str) -> None:
    assert render(example.figure, kind, example.style) == render(example.figure, kind, example.style)
