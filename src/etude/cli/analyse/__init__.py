"""Verbs that analyse results: `etude stats`, `report`, `diff`, `plan`, `export` and `bundle`; what `getstats` does."""
