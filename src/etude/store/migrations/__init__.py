"""How the tables of the store came about, one step a file below `versions`; Alembic runs them."""
