"""What the results say: summaries, comparisons, and the sentences and tables that carry them."""
