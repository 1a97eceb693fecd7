"""The most that may be set: a value beyond is a slip of the pen. The command line loads this module, and no numbers."""

from __future__ import annotations

from etude.units.formatting import DAY_S

LONGEST_S = 7 * DAY_S
"""Of a run, of its warm-up, of what a command may take, and of a response time."""
LONGEST_BUDGET_S = 366 * DAY_S
"""Of benchmarking time."""
MOST_PIECES = 1000
"""Of a trial."""
MOST_LOAD = 1e12
"""Requests per second, or clients."""
