"""Results as data: verdicts, comparisons, summaries, and the warnings about them."""
