"""Benches: they start a system, offer load and report windows (interface: `peak/bench.py`)."""
