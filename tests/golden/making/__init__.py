"""What makes inputs of each kind, by name: each gets the path that is to be made. Later ones may need earlier ones."""

from collections.abc import Callable, Mapping
from pathlib import Path

from golden.making import autopilot, benches, byhand, recordings, runs, searches, stores

PARTS = (benches, byhand, runs, searches, autopilot, recordings, stores)
MADE: Mapping[str, Callable[[Path], object]] = {
    name: make for part in PARTS for name, make in part.MADE.items()
}
