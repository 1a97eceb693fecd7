"""How a verdict is to be passed, beyond what the experiment itself was asked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from etude.analysis.warnings import Thresholds


@dataclass(frozen=True)
class VerdictOptions:
    """The choices of whoever asks for a verdict; the defaults are those at the end of `etude bench`."""

    confidence: float = 0.95
    """Of all intervals."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    silent: Collection[str] = ()
    """Kinds of warnings that are not wanted."""
    watched: tuple[str, ...] = ()
    """Metrics that are looked at for a trend beside the primary one; those that a script's WATCH names are, too."""
    reference: str | None = None
    """Test that all others are compared with; None: as the experiment was made."""
    same_within: float | None = None
    """Relative margin within which tests count as the same; None: not asked."""
    secondary: tuple[str, ...] | None = None
    """Other metrics that are compared too, with `full`; None: all."""
    every_outlier: bool = False
    """Also the outliers that the monitor does not explain, or whose trials are shorter than its interval."""
    full: bool = False
    """Also what takes some time: secondary metrics."""
