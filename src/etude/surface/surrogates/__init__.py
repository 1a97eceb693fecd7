"""Kinds of surfaces that are fitted to samples (`surface/surrogate.py` says what one is), and the choice among them."""
