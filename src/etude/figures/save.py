"""Writes a figure: drawn, in the format that its name asks for, or its data with scripts that redraw it."""

from __future__ import annotations

import io
import logging
import os
import warnings
from pathlib import Path

from etude.errors import MachineRefuses, UsageError
from etude.figures.data import Figure, blocks, data_file
from etude.figures.gnuplot import gnuplot_script
from etude.figures.python_script import python_script
from etude.figures.style import Style, settings
from etude.osutil.trust import write_user_file

FORMATS = ("pdf", "eps", "svg", "png")


def check_format(path: str) -> str:
    """The format that a file's name asks for. Raises UsageError for none that is known."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise UsageError(f"{path}: a figure is written as .pdf, .eps, .svg or .png; name one of them")
    return suffix


def save(figure: Figure, path: str, style: Style) -> list[str]:
    """Draw the figure into a file; returns what could not be shown, such as letters that the font lacks.

    Raises:
        MachineRefuses: the file cannot be written; UsageError: its name ends with no known format.
    """
    kind = check_format(path)
    picture, said = render(figure, kind, style)
    write(path, picture)
    return said


def render(figure: Figure, kind: str, style: Style) -> tuple[bytes, list[str]]:
    """The picture in one of FORMATS, and what could not be shown."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    import matplotlib.style

    from etude.figures.draw import draw

    picture = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        canvas = draw(figure, style)
        with matplotlib.style.context(["default", dict(settings(style))]):
            canvas.savefig(picture, format=kind, metadata=_metadata(figure, kind))
    lacking = sum("missing from font" in str(each.message) for each in caught)
    return picture.getvalue(), ["some letters are not in the font and are drawn as boxes"] if lacking else []


def write(path: str, content: bytes) -> None:
    """Into a file. Raises MachineRefuses where that cannot be."""
    try:
        write_user_file(path, content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise MachineRefuses(f"{path}: cannot be written: {reason}") from None


def _metadata(figure: Figure, kind: str) -> dict[str, str | None]:
    """A title for readers that cannot see, and no date: the same figure is the same file."""
    title = figure.title or f"{figure.kind}: {figure.panels[0].y.label} over {figure.x.label or 'tests'}"
    if kind == "svg":
        return {"Title": title, "Date": None}
    if kind == "pdf":
        return {"Title": title, "CreationDate": None, "ModDate": None}
    return {"Title": title} if kind == "png" else {"Creator": "Étude"}


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
