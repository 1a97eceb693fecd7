"""Transforms of rows, in the order given: declared once for `getstats` and `etude stats` (docs/getstats.md)."""

from etude.report.pipeline.transforms import TRANSFORMS, Transform, add_options, apply, checked

__all__ = ["TRANSFORMS", "Transform", "add_options", "apply", "checked"]
