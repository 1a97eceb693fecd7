"""Benches: what starts a system, offers it load, and reports windows (`bench.py` says what one is)."""
