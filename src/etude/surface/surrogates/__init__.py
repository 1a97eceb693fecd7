"""Kinds of surfaces that are fitted to samples (`surrogate.py` says what one is), and the choice among them."""
