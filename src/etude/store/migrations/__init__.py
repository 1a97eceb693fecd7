"""Migrations of the store's tables, one file per step below `versions`; Alembic runs them."""
