"""A lab for each test; what scripts leave mounted or attached is removed, and fails the test."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.program import engine_path
from support.laboratory import LIBRARY, NOBODY, Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    (tmp_path / "programs").mkdir()
    made.results.mkdir()
    yield made
    left = [*made.mounts(), *made.loops()]
    made.wipe()
    assert left == [], "scripts have left these mounted or attached"


@pytest.fixture
def nobody() -> Iterator[Lab]:
    """A lab of a user without rights: of this one, or of nobody if this is root.

    It has a library and an aptime of its own, since nobody may not be able to reach ours.
    """
    path = Path(os.path.realpath(f"/var/tmp/etude-test-{os.getpid()}-{time.monotonic_ns()}"))
    path.mkdir(mode=stat.S_IRWXU)
    made = Lab(path, path / "lib", path / "bin", NOBODY if os.geteuid() == 0 else None)
    try:
        shutil.copytree(LIBRARY, made.library)
        for directory in (made.results, made.programs, path / "programs"):
            directory.mkdir()
        shutil.copy(Path(engine_path()).with_name("aptime"), made.programs)
        if made.user is not None:
            for entry in (path, *path.rglob("*")):
                os.chown(entry, made.user, made.user)
        yield made
        assert made.mounts() == []
        assert made.loops() == []
    finally:
        made.wipe()
        shutil.rmtree(path, ignore_errors=True)
