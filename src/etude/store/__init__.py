"""Results that live on: a database of what was measured, by commit, time and machine (SQLite or PostgreSQL)."""
