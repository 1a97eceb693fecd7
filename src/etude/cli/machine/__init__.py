"""Verbs on this machine and its hosts: `etude doctor`, `quiet`, `cool`, `hosts`, `boot-resume` and `completion`."""
