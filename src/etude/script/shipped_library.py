"""Where the shipped scripts are, and the search path of a script's includes and programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def shipped_directory() -> Path | None:
    """The directory of the scripts that come with Étude: installed with it, or beside its sources."""
    sources = Path(__file__).resolve().parents[3] / "examples" / "lib"
    installed = Path(sys.prefix) / "share" / "etude" / "examples" / "lib"
    return next((path for path in (sources, installed) if path.is_dir()), None)


def search_path(environment: Mapping[str, str]) -> list[str]:
    """The directories of $APLIB, then the shipped ones."""
    named = [os.path.abspath(part) for part in environment.get("APLIB", "").split(":") if part]
    own = shipped_directory()
    return [*named, *([str(own)] if own is not None and str(own) not in named else [])]
