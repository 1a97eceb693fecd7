"""Verbs on results over time: `etude store`, `history` and `compare`."""
