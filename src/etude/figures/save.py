"""Writes a drawn figure to a file, in the format that its name asks for."""

from __future__ import annotations

import io
import logging
import warnings
from pathlib import Path

from etude.errors import MachineRefuses, UsageError
from etude.figures.data import Figure
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
