"""Whatever happened to the files, reading them gives results or one line that says what is wrong."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.analysis.verdict import verdict
from etude.errors import EtudeError, InputError
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.present.export import to_csv, to_json, to_markdown
from etude.results.reader import load_results
from etude.results.results import Results
from support.builders import still_machine
from support.fakes import World, around
from support.profiles import examples

EDITS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["replace", "insert", "delete"]),
        st.binary(min_size=1, max_size=3)
        | st.sampled_from(
            [b"\n", b'"', b"0", b"9", b"-", b"null", b"[", b"]", b"{}", b",", b"1e9", b"\\ud800"]
        ),
    ),
    min_size=1,
    max_size=3,
)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small experiment of two tests, as `etude bench` leaves it."""
    path = tmp_path_factory.mktemp("real") / "results"
    with pytest.MonkeyPatch.context() as patch:
        still_machine(patch)
        world = World({"a": around(0.010), "b": around(0.011)})
        run(make_plan(["a", "b"], seed=1, trials=4), directory=path, make_engine=world.make_engine)
    return path


def judged(results: Results) -> None:
    """What could be read can be judged, or one line says why not."""
    with contextlib.suppress(EtudeError):
        found = verdict(results)
        to_json(found), to_csv(found), to_markdown(found), str(found)


def edited(content: bytes, edits: list[tuple[float, str, bytes]]) -> bytes:
    for share, how, by in edits:
        place = int(share * len(content))
        rest = place + (0 if how == "insert" else len(by))
        content = content[:place] + (b"" if how == "delete" else by) + content[rest:]
    return content


@pytest.mark.parametrize("name", ["experiment.json", "a/results.jsonl"])
def test_edited_files_give_results_or_an_input_error(real: Path, name: str) -> None:
    original = (real / name).read_bytes()

    @settings(max_examples=examples(300))
    @given(EDITS)
    def check(edits: list[tuple[float, str, bytes]]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "copy"
            shutil.copytree(real, copy)
            (copy / name).write_bytes(edited(original, edits))
            problem = ""
            try:
                judged(load_results(copy))
            except InputError as error:
                problem = str(error)
            assert "\n" not in problem
            assert not problem or str(copy) in problem

    check()
