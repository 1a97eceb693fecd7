"""Locations of the engine's programs."""

from __future__ import annotations

import os
import sys

from etude.errors import MachineRefuses
from etude.osutil.trust import tool_environment


def engine_path() -> str:
    """Path of the engine: $ETUDE_ENGINE, beside this Python, or on the PATH.

    Raises:
        MachineRefuses: not found.
    """
    named = os.environ.get("ETUDE_ENGINE")
    if named:
        return named
    on_path = os.get_exec_path(tool_environment())
    beside = os.path.dirname(sys.argv[0])  # empty for `python -c`: not the working directory
    for directory in (os.path.join(sys.prefix, "bin"), *filter(None, (beside, *on_path))):
        path = os.path.join(directory, "etude-engine")
        if os.access(path, os.X_OK):
            return path
    raise _missing("etude-engine")


def beside_engine(name: str) -> str:
    """Another program of the engine, such as `io-static`: it is installed beside `etude-engine`.

    Raises:
        MachineRefuses: not found.
    """
    path = os.path.join(os.path.dirname(engine_path()), name)
    if not os.access(path, os.X_OK):
        raise _missing(name, f"beside {engine_path()}")
    return path


def _missing(name: str, where: str = "beside this Python or on PATH") -> MachineRefuses:
    return MachineRefuses(f"{name}: not found {where}; reinstall Étude (pip install etude)")
