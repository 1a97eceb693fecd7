"""The version of Étude: the only place that is edited; Cargo.toml has the same (tests/unit/test_version.py)."""

__version__ = "0.1.0"
