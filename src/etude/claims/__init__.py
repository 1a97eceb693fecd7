"""Claims: statements about measured results, checked, run and decided (docs/howto/claims.md)."""
