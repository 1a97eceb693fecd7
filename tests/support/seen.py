"""Operations as they were seen at the target of a load, whatever it was: the neutral form that the checks take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NO_OBJECT = -1


@dataclass(frozen=True)
class Operation:
    """One request. `path` is relative to the file set's place, "" where it is not known."""

    at_ns: int
    kind: str
    path: str
    offset: int = 0
    size: int = 0
    """Bytes that were asked for, or came to be written."""
    stable: bool = False
    before: int = -1
    """How long the file was, B, as far as could be seen; -1 where it could not."""
    status: int | None = 0
    """0 well, another number an error, None never answered."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Many operations, in the order in which they came; arrays of shape (operations,)."""

    at_ns: NDArray[np.int64]
    kind: NDArray[np.str_]
    path: NDArray[np.int64]
    """Place in `paths`."""
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    stable: NDArray[np.bool_]
    before: NDArray[np.int64]
    failed: NDArray[np.bool_]
    paths: tuple[str, ...]
    sizes: dict[str, int]
    """Of files, B, as the target has said last."""

    def __len__(self) -> int:
        return len(self.at_ns)

    def only(self, chosen: NDArray[np.bool_] | slice) -> Seen:
        """Some of the operations."""
        return Seen(
            self.at_ns[chosen],
            self.kind[chosen],
            self.path[chosen],
            self.offset[chosen],
            self.size[chosen],
            self.stable[chosen],
            self.before[chosen],
            self.failed[chosen],
            self.paths,
            self.sizes,
        )

    def of(self, *kinds: str) -> Seen:
        """Those of some kinds."""
        return self.only(np.isin(self.kind, kinds))

    def on(self, *paths: str) -> Seen:
        """Those on some files."""
        return self.only(np.isin(self.path, [self.paths.index(path) for path in paths if path in self.paths]))

    def last(self, count: int) -> Seen:
        """The last so many."""
        return self.only(slice(max(len(self) - count, 0), None))

    def counts(self) -> dict[str, int]:
        """How many there are of each kind."""
        names, numbers = np.unique(self.kind, return_counts=True)
        return {str(name): int(number) for name, number in zip(names, numbers, strict=True)}


def collect(operations: Iterable[Operation], sizes: dict[str, int] | None = None) -> Seen:
    """Operations as arrays, in the order of their time."""
    found = sorted(operations, key=lambda each: each.at_ns)
    places: dict[str, int] = {}
    return Seen(
        np.array([each.at_ns for each in found], dtype=np.int64),
        np.array([each.kind for each in found], dtype=np.str_),
        np.array([places.setdefault(each.path, len(places)) for each in found], dtype=np.int64),
        np.array([each.offset for each in found], dtype=np.int64),
        np.array([each.size for each in found], dtype=np.int64),
        np.array([each.stable for each in found], dtype=np.bool_),
        np.array([each.before for each in found], dtype=np.int64),
        np.array([each.status != 0 for each in found], dtype=np.bool_),
        tuple(places),
        dict(sizes or {}),
    )
