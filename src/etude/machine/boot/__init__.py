"""Going on behind a restart of the machine: what is kept, what is believed at boot, what boots, and when to stop."""
