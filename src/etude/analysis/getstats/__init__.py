"""Auto-pilot's Getstats: its tables, predicates, warnings and tests, as its paper prints them
(docs/howto/getstats.md)."""
