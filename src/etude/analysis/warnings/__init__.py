"""Warnings about a result, as data: pure functions from series and plain data (docs/reference/warnings.md)."""

from etude.analysis.verdict_options import Thresholds
from etude.analysis.warnings.machine import machine_warnings
from etude.analysis.warnings.series import series_warnings, work_warnings
from etude.analysis.warnings.warning import KINDS, DataWarning, WarningGroup, meaning_of, ranked

__all__ = [
    "KINDS",
    "DataWarning",
    "Thresholds",
    "WarningGroup",
    "machine_warnings",
    "meaning_of",
    "ranked",
    "series_warnings",
    "work_warnings",
]
