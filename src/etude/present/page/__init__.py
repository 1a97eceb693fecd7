"""Results as one document that is passed on: gathered, put into words, and written as HTML, Markdown or LaTeX."""

from etude.present.page.content import content_of
from etude.present.page.gather import Gathered, gather
from etude.present.section import Content

__all__ = ["Content", "Gathered", "content_of", "gather"]
