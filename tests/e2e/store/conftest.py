"""Where a store can be made: a file, or a fresh database of the one PostgreSQL of all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.postgres import Postgres, needs_postgres


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres(shared_postgres: Postgres) -> Postgres:
    """It runs, whatever a test before has done to it."""
    shared_postgres.start_if_down()
    return shared_postgres


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs_postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()
