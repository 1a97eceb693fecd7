"""Makes a machine quiet, and restores it exactly."""
