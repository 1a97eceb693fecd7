"""Runs the missing steps for Alembic, in the transaction of the given connection."""

from __future__ import annotations

from alembic import context

from etude.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=False,  # the caller begins and ends the transaction
)
context.run_migrations()
