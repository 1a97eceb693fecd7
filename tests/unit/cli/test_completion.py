"""Completions offer what the parsers have."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.machine.completion import Option, Verb, _verb, bash, fish, zsh

VERBS = {
    "bench": Verb(
        (), (Option(("-o", "--output"), "it's where"), Option(("--schedule",), "", ("blocks", "duet")))
    ),
    "io": Verb(("sweep", "lab"), (Option(("--touch",)),)),
    "io sweep": Verb((), (Option(("--buffers",), "sizes"),)),
    "quiet": Verb(("on", "off"), ()),
}
CASES = [
    ("etude ", "bench help io quiet"),
    ("etude be", "bench"),
    ("etude bench -", "--output --schedule -o"),
    ("etude bench x --s", "--schedule"),
    ("etude bench --schedule d", "duet"),
    ("etude io ", "lab sweep"),
    ("etude io --t", "--touch"),
    ("etude io sweep --", "--buffers"),
    ("etude quiet o", "off on"),
    ("etude help q", "quiet"),
    ("etude bench x", ""),
]


@pytest.mark.parametrize(("line", "offered"), CASES)
def test_bash_offers_what_fits(line: str, offered: str) -> None:
    words = line.split(" ")
    script = f"""{bash(VERBS)}
COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
_etude; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert sorted(done.stdout.split()) == sorted(offered.split())


@pytest.mark.needs_program("zsh")
@pytest.mark.parametrize("before", ["", "autoload -U compinit && compinit"], ids=["bare", "compinit"])
def test_zsh_reads_its_script(tmp_path: Path, before: str) -> None:
    script = tmp_path / "c.zsh"
    script.write_text(f"{before}\n{zsh(VERBS)}\nprint $_comps[etude]\n")
    environment = os.environ | {"ZDOTDIR": str(tmp_path)}
    words = ["zsh", "-f", str(script)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.split()[:1], done.stderr) == (["_bash_complete"], "")


@pytest.mark.needs_program("fish")
@pytest.mark.parametrize(("line", "offered"), [case for case in CASES if "help" not in case[0] + case[1]])
def test_fish_offers_what_fits(line: str, offered: str) -> None:
    script = f"{fish(VERBS)}\ncomplete -C'{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True)
    assert {each.split("\t")[0] for each in done.stdout.splitlines()} >= set(offered.split())


def test_options_and_values_are_those_of_the_parser() -> None:
    found = _verb("bench")
    by_name = {name: option for option in found.options for name in option.names}
    assert by_name["--schedule"].values == ("blocks", "in-turn", "duet")
    assert by_name["-w"] is by_name["--warmup"]
    assert _verb("quiet").words == ("on", "off", "status")
    assert _verb("store").words[:2] == ("add", "list")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(
    etude: Callable[..., int], capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    assert etude("completion", shell) == 0
    assert "etude" in capsys.readouterr().out
    assert etude("completion", "csh") == 2
