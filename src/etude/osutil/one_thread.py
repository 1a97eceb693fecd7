"""Single-threaded linear algebra: matrices here are small, and idle threads of OpenBLAS would disturb measurements."""

from __future__ import annotations

import os
import sys

NAME = "OPENBLAS_NUM_THREADS"


def one_thread() -> None:
    """Load NumPy's and SciPy's OpenBLAS with one thread. The variable is read at load time and removed afterwards,
    since measured commands would inherit it. A user's own setting stays."""
    if NAME in os.environ or "numpy" in sys.modules:
        return
    os.environ[NAME] = "1"
    try:
        import numpy.linalg  # noqa: F401
        import scipy.linalg  # noqa: F401  # it has an OpenBLAS of its own
    finally:
        del os.environ[NAME]
