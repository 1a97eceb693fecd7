"""`etude plot --monitor` and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monitored import busy_second, trials_of_seconds
