"""Notebooks, executed by a kernel that is this Python and has nothing of the user's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest


def executed(notebook: Any, home: Path, environment: Mapping[str, str], *, timeout_s: int = 120) -> Any:
    """A copy of a notebook with its outputs, executed in `home`/here. Raises CellExecutionError: a cell failed."""
    kernel = home / "jupyter" / "kernels" / "this"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "", "language": "python"}))
    (home / "here").mkdir(exist_ok=True)
    own = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "MPLCONFIGDIR")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PATH": programs, "PYTHONWARNINGS": "ignore", **environment}.items():
            patch.setenv(name, value)
        patch.setenv("JUPYTER_PATH", str(home / "jupyter"))
        for name in own:
            patch.setenv(name, str(home / name.lower()))
        client = nbclient.NotebookClient(
            nbformat.from_dict(notebook),
            kernel_name="this",
            timeout=timeout_s,
            resources={"metadata": {"path": home / "here"}},
        )
        return client.execute()


def images(notebook: Any) -> int:
    """Number of pictures among the outputs."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return sum("image/png" in output.get("data", ()) for cell in cells for output in cell.outputs)
