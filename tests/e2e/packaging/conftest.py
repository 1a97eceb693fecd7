import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from support.places import ROOT

REPOSITORY = ROOT


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def tool() -> Callable[[str], ModuleType]:
    """Loads a module of packaging/, which is a directory of scripts and no package."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, REPOSITORY / "packaging" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def programs(tmp_path: Path) -> Callable[..., Path]:
    """Makes a directory for PATH that holds these programs only: real ones by name, others by their text."""

    def make(*real: str, **made: str) -> Path:
        directory = tmp_path / "path"
        directory.mkdir(exist_ok=True)
        for name in real:
            found = next(
                Path(place, name) for place in os.environ["PATH"].split(":") if Path(place, name).is_file()
            )
            (directory / name).symlink_to(found)
        for name, text in made.items():
            program = directory / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o755)
        return directory

    return make
