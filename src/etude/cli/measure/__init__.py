"""Verbs that measure: `etude bench`, `etude run` and the I/O lab."""
