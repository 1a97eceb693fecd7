"""Verbs that draw: `etude plot` and `etude profile`; what `graphit` does."""
