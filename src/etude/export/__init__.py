"""Results in the formats of other programs (docs/export.md): one module a format, each data to text.

A format is a function from a `Document` to an `Exported`, listed in `formats.py`.
"""
