"""A report in one of its formats, and onto the disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from etude.errors import MachineRefuses
from etude.report.page.content import Content


def rendered(content: Content, form: str) -> str:
    """The document as text. `form`: html, markdown or latex.

    Raises:
        MachineRefuses: a library that the page is made with is not installed.
    """
    if form == "html":
        from etude.report.page.html import to_html

        return to_html(content)
    if form == "markdown":
        from etude.report.page.markdown import to_markdown

        return to_markdown(content)
    from etude.report.page.latex import to_latex

    return to_latex(content)


def write(path: Path, document: str) -> None:
    """Replace the file whole: a page that is looked at is never half written. Characters that UTF-8 lacks become `?`.

    Raises:
        MachineRefuses: it cannot be written.
    """
    beside = None
    try:
        if path.exists() and not path.is_file():  # a device, such as /dev/stdout
            path.write_text(document, encoding="utf-8", errors="replace")
            return
        number, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(document)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)
        os.replace(beside, path)
    except OSError as error:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise MachineRefuses(
            f"{path}: the report cannot be written: {reason}; name another file with -o"
        ) from error
