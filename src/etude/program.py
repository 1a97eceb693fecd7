"""Where `etude-engine` is: what runs while something is measured, and what reads many results."""

from __future__ import annotations

import os
import sys

from etude.errors import MachineRefuses


def engine_path() -> str:
    """Where the engine is: $ETUDE_ENGINE, beside this Python, or on the PATH.

    Raises:
        MachineRefuses: nowhere.
    """
    named = os.environ.get("ETUDE_ENGINE")
    if named:
        return named
    for directory in (os.path.join(sys.prefix, "bin"), os.path.dirname(sys.argv[0]), *os.get_exec_path()):
        path = os.path.join(directory, "etude-engine")
        if os.access(path, os.X_OK):
            return path
    raise MachineRefuses(
        "etude-engine: not found beside this Python or on PATH; reinstall Étude (pip install etude)"
    )
