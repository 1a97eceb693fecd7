"""Verbs on the capacity of servers: `etude peak` and `etude surface`."""
