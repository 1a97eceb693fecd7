"""The version of Étude, as pyproject.toml has it."""

__version__ = "0.1.0"
