"""A script is run again from the text that its results keep, whatever has become of its files."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import EtudeError, InputError
from etude.script.run import ScriptOptions, changed_files, read_script, stored_script

SCRIPT = "INCLUDE sizes.inc\nOPTINCLUDE local.inc\nINCLUDEPATH more\nINCLUDE deep/x.inc\nTEST t 2\nEXEC true\nDONE\n"


def record(asked: ScriptOptions, where: Path) -> dict[str, Any]:
    """What experiment.json says of a script, through JSON."""
    plan = {
        "kind": "script",
        "script": str(where / "x.ap"),
        "text": {file: list(lines) for file, lines in asked.program.lines.items()},
        "assignments": dict(asked.assignments),
        "seed": asked.seed,
        "res": asked.res,
        "counters": asked.counters,
    }
    machine = {"before": {"directory": {"path": str(where)}}}
    document = {"plan": plan, "digest": asked.program.digest, "machine": machine}
    read: dict[str, Any] = json.loads(json.dumps(document))
    return read


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script with files beside it, on INCLUDEPATH and on a search path."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "x.ap": SCRIPT,
        "library/sizes.inc": "VAR SIZE=4\nINCLUDE other.inc\n",
        "library/other.inc": "VAR OTHER=1\r\n",
        "more/deep/x.inc": "# nothing\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def test_the_same_program_comes_out_without_a_look_at_any_file(script: Path) -> None:
    asked = read_script("x.ap", ["N=1"], seed=1, directories=["library"], res=False, counters="off")
    document = record(asked, script)
    for file in script.rglob("*.*"):
        if file.is_file():
            file.unlink()
    found = stored_script(document, 7, "here")
    assert found.program.instructions == asked.program.instructions
    assert found.program.lines == asked.program.lines
    assert found.program.digest == asked.program.digest
    assert found.program.path == str(script / "x.ap")
    assert (found.assignments, found.seed, found.res, found.counters) == ({"N": "1"}, 7, False, "off")
    assert found.state().scope.variables["SCRIPTDIR"] == str(script)


def test_an_include_that_was_not_there_then_is_not_there_now(script: Path) -> None:
    document = record(read_script("x.ap", directories=["library"]), script)
    (script / "local.inc").write_text("STOP\n")
    ops = [i.op.value for i in stored_script(document, 1, "here").program.instructions]
    assert "STOP" not in ops
    del document["plan"]["text"]["library/sizes.inc"]
    with pytest.raises(InputError, match=r"no file 'sizes\.inc'"):
        stored_script(document, 1, "here")


def test_files_that_have_changed_since_are_named(script: Path) -> None:
    document = record(read_script("x.ap", directories=["library"]), script)
    assert changed_files(document) == []
    (script / "x.ap").write_text(SCRIPT + "ECHO more\n")
    (script / "library" / "sizes.inc").unlink()
    (script / "more" / "deep" / "x.inc").write_bytes(b"\xff")
    assert changed_files(document) == [
        f"{script}/x.ap has changed since",
        f"{script}/library/sizes.inc is gone since",
        f"{script}/more/deep/x.inc has changed since",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"text": None},
        {"text": {}},
        {"text": {"x.ap": "TEST"}},
        {"text": {"x.ap": [1]}},
        {"script": 3},
        {"assignments": None},
        {"assignments": {"N": 1}},
    ],
)
def test_a_record_without_a_text_is_refused(script: Path, change: dict[str, Any]) -> None:
    document = record(read_script("x.ap", directories=["library"]), script)
    document["plan"] |= change
    with pytest.raises(InputError, match=r"^here: .*\btext\b"):
        stored_script(document, 1, "here")
    with pytest.raises(InputError, match=r"^here: .*not of"):
        stored_script({"plan": {"kind": "res"}}, 1, "here")


@pytest.mark.parametrize("masks", [None, 3, [3], ["("]])
def test_masks_that_cannot_be_read_are_refused(script: Path, masks: object) -> None:
    document = record(read_script("x.ap", directories=["library"]), script)
    document["plan"]["masks"] = masks
    with pytest.raises(InputError, match=r"^here: .*masks"):
        stored_script(document, 1, "here")


@given(st.dictionaries(st.text(max_size=9), st.lists(st.text(max_size=20), max_size=4), max_size=4))
def test_whatever_stands_in_a_record_is_a_program_or_one_error(text: dict[str, list[str]]) -> None:
    document = {"plan": {"kind": "script", "script": "/x.ap", "text": text, "assignments": {}}}
    with contextlib.suppress(EtudeError):
        stored_script(document, 1, "here")
