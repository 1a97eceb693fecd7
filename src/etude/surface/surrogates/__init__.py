"""Kinds of surrogates (interface: `surface/surrogate.py`), and the choice among them."""
