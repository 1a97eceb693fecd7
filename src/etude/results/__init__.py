"""Results on disk: what a measurement is, how it is written and read back (docs/formats.md)."""
