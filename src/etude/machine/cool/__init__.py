"""The state of the caches before a trial: brought about, and looked at (docs/caches.md)."""
