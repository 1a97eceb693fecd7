"""The examples of docs/howto/history.md print what is written there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from etude.store.database import open_store
from etude.store.entry import Machine
from support.fakes import World
from support.made_histories import fill, history, on_another
from support.places import DOCS

pytestmark = pytest.mark.more

PAGE = DOCS / "howto" / "history.md"
UPGRADED = Machine("host-a", "d2", (("kernel", "6.2"), ("processor", "Epyc")))
OTHER = Machine("host-b", "d3", (("kernel", "6.1"), ("processor", "Xeon")))


def examples() -> list[tuple[str, str]]:
    """Command lines with what they print, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for part in block.split("$ ")[1:]:
            line, _, said = part.partition("\n")
            found.append((line, said))
    return found


def test_the_examples_of_the_page_print_what_it_says(
    world: World,
    etude: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ETUDE_STORE", raising=False)
    made = on_another(history(120, {60: 1.05, 100: 1.08}), UPGRADED, 100)
    made[30] = replace(made[30], tags=("v1.0",))
    made[80] = replace(made[80], tags=("v1.1",))
    with open_store() as store:
        fill(store, [*made, *history(40, machine=OTHER, seed=3)])
    (rules,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    Path("rules.toml").write_text(rules)
    assert len(examples()) >= 5
    for line, said in examples():
        verb, *arguments = shlex.split(line)
        assert verb == "etude"
        etude(*arguments)
        printed = capsys.readouterr()
        assert _words(printed.out + printed.err) == _words(said), line


def _words(text: str) -> list[str]:
    return [word for word in text.split() if not set(word) <= {"─"}]
