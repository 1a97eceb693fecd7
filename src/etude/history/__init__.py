"""Results over time: where a metric steps, what changed there, and which rules raise an alarm."""
