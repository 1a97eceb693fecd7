"""Load-picking policies: one module each (`policy.py` says what one is)."""
