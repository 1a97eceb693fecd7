"""Tables of sections and reports as LaTeX, for a paper: booktabs, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator

from etude.escaping import delimited, one_line
from etude.present.section import Cell, Content, Table, cell_text

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",  # after \\ it would be a length
    "]": "{]}",
    "*": "{*}",
    "-": "{-}",  # two of them would become a dash
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "×": r"\ensuremath{\times}",
    "±": r"\ensuremath{\pm}",
    "µ": r"\ensuremath{\mu}",
    "→": r"\ensuremath{\rightarrow}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "\u00a0": r"\nobreakspace{}",
}


def to_latex(content: Content) -> str:
    """All tables, the first with the verdict in its caption, each with the notice that results are simulated."""
    return "\n".join(_lines(content)) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is, with control characters written out."""
    return "".join(_ESCAPES.get(c, c) for c in one_line(text))


def _lines(c: Content) -> Iterator[str]:
    yield r"% \usepackage{booktabs} \usepackage[T1]{fontenc} \usepackage{textcomp}; set with UTF-8"
    yield f"% Made {_comment(c.made)} by etude {_comment(c.version)} from {_comment(', '.join(c.labels))}"
    answers = {answer.key: answer.sentences for answer in c.answers}
    often = " ".join(answers["often"])
    tables = [
        *((table, often) for table in (c.comparisons,) if table.rows),
        *(
            (table, " ".join((f"{table.caption}.", often, *answers["where"])))
            for table in (c.tests,)
            if table.rows
        ),
        *(
            (table, f"{table.caption}.")
            for table in (*(each for part in c.parts for each in part.tables), *c.summaries)
        ),
    ]
    if not tables:
        yield from (f"% {_comment(line)}" for line in filter(None, (c.banner, *c.headline)))
    for place, (table, caption) in enumerate(tables):
        yield from _table(table, " ".join(filter(None, (c.banner, *(() if place else c.headline), caption))))
    for w in c.warnings:
        yield f"% warning: {_comment(': '.join(part for part in (w.test, w.text, w.advice) if part))}"


def _table(table: Table, caption: str) -> Iterator[str]:
    yield from (r"\begin{table}", r"\centering")
    yield rf"\caption{{{escaped(caption)}}}"
    yield rf"\label{{tab:{table.key}}}"
    yield rf"\begin{{tabular}}{{{''.join('r' if numeric else 'l' for numeric in table.numeric)}}}"
    yield r"\toprule"
    yield rf"{' & '.join(map(escaped, table.headings))} \\"
    yield r"\midrule"
    for row in table.rows:
        yield rf"{' & '.join(_cell(cell) for cell in row)} \\"
    yield from (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")


def _cell(cell: Cell) -> str:
    text = cell_text(cell)
    return escaped(delimited(text) if text else "")


def _comment(text: str) -> str:
    """One line, so that nothing in it is set."""
    return one_line(text)
