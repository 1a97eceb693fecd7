"""Results on disk: measurements, writing and reading them (docs/reference/formats.md)."""
