from unit.cli.conftest import _all_characters, _still_machine, etude, world

__all__ = ["_all_characters", "_still_machine", "etude", "world"]
