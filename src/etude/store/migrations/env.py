"""What Alembic runs: the steps that are missing, in the transaction of the connection that it is given."""

from __future__ import annotations

from alembic import context

from etude.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=False,  # the transaction is that of who asked, and so is its end
)
context.run_migrations()
