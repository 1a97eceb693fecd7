"""Store of results over time: a database of measurements by commit, time and machine (SQLite or PostgreSQL)."""
