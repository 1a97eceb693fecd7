"""Benches: what starts a system, offers it load, and reports windows (`peak/bench.py` says what one is)."""
