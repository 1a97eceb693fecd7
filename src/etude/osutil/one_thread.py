"""Linear algebra in one thread: matrices here are small, and idle threads of OpenBLAS spin beside what is measured."""

from __future__ import annotations

import os
import sys

NAME = "OPENBLAS_NUM_THREADS"


def one_thread() -> None:
    """Load NumPy's and SciPy's OpenBLAS so. They read the variable as they are loaded: afterwards it is taken back, for
    what is measured would inherit it. What the user has set stays."""
    if NAME in os.environ or "numpy" in sys.modules:
        return
    os.environ[NAME] = "1"
    try:
        import numpy.linalg  # noqa: F401
        import scipy.linalg  # noqa: F401  # it has an OpenBLAS of its own
    finally:
        del os.environ[NAME]
