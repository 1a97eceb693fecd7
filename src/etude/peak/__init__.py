"""Search for the maximum sustainable load of a server (its peak rate) in the least benchmarking time.

Here are upper bounds of options, which catch typing errors. The command line loads them without numpy.
"""

from __future__ import annotations

from etude.units.formatting import DAY_S

LONGEST_S = 7 * DAY_S
"""Maximum of a run, of its warm-up, of a timeout, and of a response time, s."""
LONGEST_BUDGET_S = 366 * DAY_S
"""Maximum budget of benchmarking time, s."""
MOST_PIECES = 1000
"""Maximum number of runs in a trial."""
MOST_LOAD = 1e12
"""Maximum load, requests/s or clients."""
MOST_CORES = 65536
"""Maximum cores of a load generator."""
MOST_OUTSTANDING = 10**9
"""Maximum requests that a load generator may have outstanding."""
