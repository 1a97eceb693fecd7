"""A report in one of its formats, and onto the disk."""

from __future__ import annotations

import os
from pathlib import Path

from etude.errors import MachineRefuses
from etude.osutil.files import replace_file
from etude.osutil.user_files import write_user_file
from etude.present.page.content import Content


def rendered(content: Content, form: str) -> str:
    """The document as text. `form`: html, markdown or latex.

    Raises:
        MachineRefuses: a library that the page is made with is not installed.
    """
    if form == "html":
        from etude.present.page.html import to_html

        return to_html(content)
    if form == "markdown":
        from etude.present.page.markdown import to_markdown

        return to_markdown(content)
    from etude.present.page.latex import to_latex

    return to_latex(content)


def write(path: Path, document: str) -> None:
    """Replace the file whole: a page that is looked at is never half written. Characters that UTF-8 lacks become `?`.

    Raises:
        MachineRefuses: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # a device, such as /dev/stdout
            write_user_file(path, document.encode("utf-8", "replace"))
            return
        replace_file(path, document.encode("utf-8", "replace"), sync=False)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise MachineRefuses(
            f"{path}: the report cannot be written: {reason}; name another file with -o"
        ) from error
