"""Probes: what they are, who asks them, and those that come with Étude (docs/extending.md)."""
