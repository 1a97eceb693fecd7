"""Cache states before a trial: preparing them, and checking them (docs/howto/residency.md)."""
