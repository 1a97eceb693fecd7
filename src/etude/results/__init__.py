"""Results on disk: measurements, writing and reading them (docs/formats.md)."""
