"""What makes inputs of each kind, by name: each gets the path that is to be made."""

from collections.abc import Callable, Mapping
from pathlib import Path

from golden.making import benches

MADE: Mapping[str, Callable[[Path], None]] = {**benches.MADE}
