"""Benches: they start a system, offer load and report windows (interface: `Bench` of `peak/search.py`)."""
