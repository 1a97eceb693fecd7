"""A figure's data as a text file, with a Gnuplot and a Python script that redraw it without Étude."""

from __future__ import annotations

import os
from pathlib import Path

from etude.errors import MachineRefuses
from etude.figures.blocks import blocks, data_file
from etude.figures.data import Figure
from etude.figures.gnuplot import gnuplot_script
from etude.figures.python_script import python_script
from etude.figures.save import write


def export(figure: Figure, directory: str, stem: str) -> list[str]:
    """Writes STEM.dat, STEM.gnuplot and STEM.py; returns their paths.

    Raises:
        MachineRefuses: the directory cannot be made or written.
    """
    try:
        os.makedirs(directory or ".", exist_ok=True)
    except OSError as error:
        raise MachineRefuses(f"{directory}: cannot be made: {error.strerror}") from None
    found = list(blocks(figure))
    texts = {
        ".dat": data_file(figure, found),
        ".gnuplot": gnuplot_script(figure, found, stem),
        ".py": python_script(figure, found, stem),
    }
    paths = [str(Path(directory, stem + suffix)) for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write(path, text.encode("utf-8"))
    return paths
