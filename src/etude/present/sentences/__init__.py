"""The sentences that people read about results, by subject; findings come from `etude.analysis` and below."""
