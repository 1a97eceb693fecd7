"""What is shown while something is measured, between trials only."""
