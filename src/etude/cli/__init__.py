"""The command line: one small module a verb, and no logic. Only this layer and `etude.present` print."""
