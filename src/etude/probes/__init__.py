"""Probes: their interface, their runner, and those that come with Étude (docs/howto/extending.md)."""
