"""A PostgreSQL of the tests' own: made in a temporary directory, on a free port of the loopback, and gone afterwards.

As root the server runs as the user postgres, since it refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from typing import Self

import pytest
from psycopg import connect

from support.ports import free_ports

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
needs_postgres = pytest.mark.skipif(
    not PROGRAMS, reason="no program postgres: install the Debian package postgresql"
)
SETTINGS = ("shared_buffers=16MB", "max_connections=20", "logging_collector=off")


class Postgres:
    """A context manager: a server that listens, with as many databases as are asked for."""

    def __init__(self, *, durable: bool = False) -> None:
        """durable: wait for the disk at each commit, as a user's server does; tests need not."""
        self._durable = durable

    def __enter__(self) -> Self:
        self._place = Path(tempfile.mkdtemp(prefix="etude-store-postgres."))
        self._data = self._place / "data"
        self._numbers = count(1)
        (self.port,) = free_ports(1)
        try:
            if os.geteuid() == 0:
                shutil.chown(self._place, "postgres")
            self._do("initdb", "-D", self._data, "-U", "etude", "--auth=trust", "--no-sync", "-E", "UTF8")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._place, ignore_errors=True)

    def start(self) -> None:
        """Returns when it takes connections."""
        settings = [
            *SETTINGS,
            f"fsync={'on' if self._durable else 'off'}",
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
        ]
        settings.append(f"unix_socket_directories={self._place}")
        words = " ".join(f"-c {setting}" for setting in settings)
        self._do("pg_ctl", "start", "-w", "-D", self._data, "-o", words, "-l", self._place / "log")

    def start_if_down(self) -> None:
        """After a test that has stopped it, and failed before it was started again."""
        if not (self._data / "postmaster.pid").exists():
            self.start()

    def stop(self) -> None:
        """At once, as after a loss of power: connections break, what was not committed is gone."""
        self._do("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self._data)

    def database(self) -> str:
        """The URL of a new, empty database."""
        name = f"store{next(self._numbers)}"
        with connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def url(self, database: str = "postgres") -> str:
        """Of a database."""
        return f"postgresql://etude:secret@127.0.0.1:{self.port}/{database}"

    def _do(self, program: str, *words: str | Path) -> None:
        as_user = {"user": pwd.getpwnam("postgres").pw_uid, "group": pwd.getpwnam("postgres").pw_gid}
        done = subprocess.run(
            [PROGRAMS[-1] / program, *words],
            check=False,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            **(as_user | {"extra_groups": []} if os.geteuid() == 0 else {}),  # type: ignore[call-overload]
        )
        if done.returncode != 0:
            log = self._place / "log"
            raise RuntimeError(f"{program}: {done.stderr}{log.read_text() if log.exists() else ''}")
