"""The artifact appendix of claims in Markdown or LaTeX, every text escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from etude.claims.stored_claims import StoredClaims
from etude.escaping import escaped
from etude.present.sentences.artifact import Part, parts
from etude.present.to_latex import escaped as latex
from etude.present.to_markdown import escaped as markdown

FORMS = ("md", "latex")


def appendix(stored: StoredClaims, form: str) -> str:
    """The appendix as text. `form`: md or latex.

    Raises:
        InputError: an input cannot be read, or changed since it was measured.
    """
    write, opening = _FORMS[form]
    blocks = [opening, *("\n".join(write(part)) for part in parts(stored))]
    return "\n\n".join(blocks) + "\n"


def _markdown(part: Part) -> Iterator[str]:
    if part.kind == "command":
        fence = "`" * max(3, *(line.count("`") + 1 for line in part.lines))
        yield from (fence, *map(_one_line, part.lines), fence)
    elif part.kind == "items":
        yield from (f"- {markdown(line)}" for line in part.lines)
    else:
        yield {"heading": "## ", "subheading": "### ", "text": ""}[part.kind] + markdown(part.lines[0])


def _latex(part: Part) -> Iterator[str]:
    if part.kind == "command":
        yield r"\begin{quote}\ttfamily\raggedright"
        yield " \\\\\n".join(latex(line) for line in part.lines)
        yield r"\end{quote}"
    elif part.kind == "items":
        yield r"\begin{itemize}"
        yield from (rf"\item {latex(line)}" for line in part.lines)
        yield r"\end{itemize}"
    else:
        begin, end = {
            "heading": (r"\subsection{", "}"),
            "subheading": (r"\subsubsection{", "}"),
            "text": ("", ""),
        }[part.kind]
        yield f"{begin}{latex(part.lines[0])}{end}"


def _one_line(text: str) -> str:
    """A line of code, with control characters written out."""
    return escaped(text, lines=False)


_FORMS: Mapping[str, tuple[Callable[[Part], Iterator[str]], str]] = {
    "md": (_markdown, "# Artifact appendix"),
    "latex": (
        _latex,
        "% \\usepackage[T1]{fontenc} \\usepackage{textcomp}; set with UTF-8\n"
        "\\appendix\n\\section{Artifact Appendix}\\label{artifact}",
    ),
}
