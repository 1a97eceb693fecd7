"""Results in the formats of other programs (docs/export.md): one module a format, each data to text.

A format is a module with `ABOUT`, a line of what it is for, and `write(document) -> Exported`.
"""
