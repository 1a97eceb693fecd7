"""Quantities, and the numbers of results: one grammar to read them, one way to write them."""
