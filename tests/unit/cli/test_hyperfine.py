"""What users of hyperfine type, with `etude bench` in its place."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etude.engine import Launch
from support.fakes import World, around, is_hook
from support.places import DATA

READERS = DATA / "readers"

Etude = Callable[..., int]
Captured = pytest.CaptureFixture[str]

EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "one command": (["sleep 0.3"], ["sleep 0.3"]),
    "a number of runs": (["--runs", "5", "sleep 0.3"], ["sleep 0.3"]),
    "two commands": (["hexdump file", "xxd file"], ["hexdump file", "xxd file"]),
    "parameter scan": (
        ["--prepare", "make clean", "--parameter-scan", "num_threads", "1", "12", "make -j {num_threads}"],
        [f"make -j {n}" for n in range(1, 13)],
    ),
    "the same, short": (["-P", "threads", "1", "2", "make -j {threads}"], ["make -j 1", "make -j 2"]),
    "parameter scan with a step": (
        ["--parameter-scan", "delay", "0.3", "0.7", "-D", "0.2", "sleep {delay}"],
        ["sleep 0.3", "sleep 0.5", "sleep 0.7"],
    ),
    "parameter list": (
        ["-L", "compiler", "gcc,clang", "{compiler} -O2 main.cpp"],
        ["gcc -O2 main.cpp", "clang -O2 main.cpp"],
    ),
    "another shell": (
        ["--shell=zsh", "for i in {1..10000}; do echo test; done"],
        ["zsh -c for i in {1..10000}; do echo test; done"],
    ),
    "no shell": (["-N", "grep TODO /home/user"], ["grep TODO /home/user"]),
    "an exported function": (["--shell=bash", "my_function"], ["bash -c my_function"]),
    "a reference": (["--reference", "old x", "--reference-name", "old", "new x"], ["old x", "new x"]),
}
"""Examples of hyperfine's README and --help that run: their arguments, and what is run."""
REFUSED: dict[str, tuple[list[str], str]] = {
    "a variable": (["LC_ALL=C sort words"], "env LC_ALL="),
    "a pattern": (["--warmup", "3", "grep -R TODO *"], "etude bench --shell --warmup 3 'grep -R TODO *'"),
    "a pattern, cold": (
        ["--prepare", "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches", "grep -R TODO *"],
        "etude bench --shell --prepare 'sync; echo 3 | sudo tee /proc/sys/vm/drop_caches' 'grep -R TODO *'",
    ),
    "a shell by its name": (["--shell", "zsh", "for i in {1..10000}; do echo test; done"], "--shell=zsh"),
    "a function within": (["my_function() { sleep 1; }; my_function"], "etude bench --shell 'my_function"),
    "a sourced alias": (
        [". /tmp/my_alias.sh; my_alias"],
        "etude bench --shell '. /tmp/my_alias.sh; my_alias'",
    ),
    "arithmetic": (["-P", "size", "0", "3", "sleep $((2**{size}))"], "etude bench --shell -P size 0 3 "),
    "chosen exit statuses": (["--ignore-failure=1,2", "a"], "--ignore-failure"),
    "a pipe for the output": (["--output=pipe", "a"], "--check-output each"),
    "the output on the screen": (["--output", "inherit", "a"], "--show-output"),
    "a style": (["--style", "basic", "a"], "NO_COLOR=1"),
    "a unit": (["-u", "millisecond", "a"], "--json"),
    "a unit, long": (["--time-unit=second", "a"], "--json"),
    "AsciiDoc": (["--export-asciidoc", "x", "a"], "--export markdown=FILE"),
    "an order": (["--sort", "command", "a", "b"], "baseline"),
}
"""Those that do not, and what the one line names to type instead."""


def commands(world: World) -> list[str]:
    """What was measured, each once, but the empty shell."""
    lines = [" ".join(launch.workers[0].argv) for launch in world.log if not is_hook(launch)]
    return sorted(set(lines), key=lines.index) if lines else []


@pytest.fixture(autouse=True)
def _times(world: World) -> None:
    """Any command takes a while that is not the same each time."""
    names = {line.split()[0] for _, measured in EXAMPLES.values() for line in measured} - {"zsh", "bash"}
    world.times = dict(world.times) | {name: around(0.01) for name in names}
    world.times |= dict.fromkeys(("zsh", "bash"), _shell_takes)


def _shell_takes(launch: Launch) -> float:
    return 0.001 if launch.workers[0].argv[-1] == ":" else 0.01


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_hyperfine_run(etude: Etude, world: World, name: str) -> None:
    arguments, measured = EXAMPLES[name]
    few = [] if "--runs" in arguments else ["-M", "2"]
    assert etude("bench", "-o", "r", *few, *arguments) == 0
    assert sorted(c for c in commands(world) if not c.endswith("-c :")) == sorted(measured)


@pytest.mark.parametrize("name", REFUSED)
def test_examples_that_mean_something_else_are_one_line_that_names_what_to_type(
    etude: Etude, world: World, capsys: Captured, name: str
) -> None:
    arguments, typed = REFUSED[name]
    assert etude("bench", *arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert typed in err
    assert (world.log, os.listdir()) == ([], [])


def rows(world: World, command: str) -> list[Launch]:
    return [launch for launch in world.log if launch.workers[0].argv[0] == command and not is_hook(launch)]


def document(directory: str = "r") -> Any:
    return json.loads(Path(directory, "experiment.json").read_text())


def test_warm_up_runs_are_recorded_and_excluded(etude: Etude, world: World) -> None:
    assert etude("bench", "-o", "r", "-w", "3", "-r", "2", "a", "b") == 0
    for name in ("a", "b"):
        found = [json.loads(line) for line in Path("r", name, "results.jsonl").read_text().splitlines()]
        assert [row["kept"] for row in found] == [False] * 3 + [True] * 2
    assert document()["plan"]["warmup"] == 3
    assert etude("bench", "-w", "0", "a") == 2


def test_a_plan_without_further_warm_up_runs_is_written_as_before(etude: Etude) -> None:
    assert etude("bench", "-o", "r", "-r", "2", "a") == 0
    assert "warmup" not in document()["plan"]
    assert "stdin" not in document()["plan"]["tests"][0]


def test_short_options_are_those_of_hyperfine(etude: Etude, world: World) -> None:
    assert (
        etude("bench", "-o", "r", "-s", "S", "-p", "P", "-C", "C", "-c", "L", "-m", "2", "-M", "2", "-i", "a")
        == 0
    )
    plan = document()["plan"]
    assert [plan["tests"][0][point] for point in ("setup", "prepare", "conclude", "cleanup")] == list("SPCL")
    assert (plan["rule"]["parameters"]["minimum"], plan["rule"]["parameters"]["maximum"]) == (2, 2)
    assert plan["ignore_failure"]


def test_hooks_are_given_once_or_for_each_command(etude: Etude, capsys: Captured) -> None:
    assert etude("bench", "-o", "r", "-r", "1", "--prepare", "x", "--prepare", "y", "a", "b") == 0
    assert [test["prepare"] for test in document()["plan"]["tests"]] == ["x", "y"]
    assert etude("bench", "-r", "1", "--conclude", "x", "--conclude", "y", "a", "b", "c") == 2


@pytest.mark.parametrize(
    ("arguments", "shell"),
    [
        (["-S", "bash --norc"], ["bash", "--norc", "-c", ":"]),
        (["--shell=default"], ["/bin/sh", "-c", ":"]),
        (["-S", "default"], ["/bin/sh", "-c", ":"]),
        (["--shell", "--shell-program", "/a b/sh"], ["/a b/sh", "-c", ":"]),
    ],
)
def test_the_shell_is_a_command_line(
    etude: Etude, world: World, arguments: list[str], shell: list[str]
) -> None:
    world.times = {shell[0]: _shell_takes}
    assert etude("bench", "-r", "2", *arguments, "a | b") == 0
    assert shell in [list(launch.workers[0].argv) for launch in world.log]
    assert [*shell[:-1], "a | b"] in [list(launch.workers[0].argv) for launch in world.log]


def test_no_shell_may_be_written_as_the_shell_none(etude: Etude, world: World) -> None:
    assert etude("bench", "-r", "2", "-S", "none", "a b") == 0
    assert {tuple(launch.workers[0].argv) for launch in world.log} == {("a", "b")}


def test_a_shell_and_no_shell_exclude_each_other(etude: Etude) -> None:
    assert etude("bench", "-N", "--shell", "a") == 2
    assert etude("bench", "-N", "-S", "bash", "a") == 2


def test_input_is_a_file_that_is_there(etude: Etude, world: World) -> None:
    Path("words").touch()
    assert etude("bench", "-o", "r", "-r", "2", "--input", "words", "a") == 0
    assert [launch.workers[0].stdin for launch in rows(world, "a")] == [
        {"file": os.path.abspath("words")}
    ] * 2
    assert etude("bench", "-o", "s", "-r", "2", "--input", "null", "b") == 0
    assert {launch.workers[0].stdin for launch in rows(world, "b")} == {"null"}
    assert etude("bench", "--input", "nowhere", "a") == 2


def test_a_program_is_a_command_also_where_a_directory_has_its_name(etude: Etude) -> None:
    Path("ls").mkdir()
    Path("data").mkdir()
    assert etude("bench", "-r", "2", "a", "ls") == 0
    assert etude("bench", "-r", "2", "a", "data") == 2


def test_output_is_shown_after_each_run(etude: Etude, world: World, capsys: Captured) -> None:
    world.times = {"a": {"elapsed": 0.01, "stdout": "said\n"}}
    assert etude("bench", "-o", "r", "-r", "2", "--show-output", "a") == 0
    assert capsys.readouterr().err.count("said\n") == 3
    assert etude("bench", "--show-output", "--pool", "local", "a") == 2


def test_exports_are_what_hyperfine_writes(etude: Etude) -> None:
    assert (
        etude("bench", "-r", "2", "--export-json", "x.json", "--export-markdown", "x.md", "-n", "q", "a") == 0
    )
    (found,) = json.loads(Path("x.json").read_text())["results"]
    assert (found["command"], len(found["times"])) == ("q", 2)
    assert Path("x.md").read_text().startswith("| ")


def test_the_exported_table_has_the_columns_of_hyperfine_and_ours_has_more(etude: Etude) -> None:
    words = ("-r", "3", "-L", "x", "1,2", "--export-csv", "x.csv", "--export", "csv=own.csv", "b {x}")
    assert etude("bench", *words) == 0
    with open("x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    like = (READERS / "hyperfine-p.csv").read_text().splitlines()[0].replace("parameter_d", "parameter_x")
    assert ",".join(rows[0]) == like
    assert [(row["command"], row["parameter_x"]) for row in rows] == [("b 1", "1"), ("b 2", "2")]
    assert 0 < float(rows[0]["min"]) <= float(rows[0]["median"]) <= float(rows[0]["max"])
    assert Path("own.csv").read_text().startswith("test,x,metric,unit,")


def test_formats_of_other_programs_are_exported_beside_the_results(etude: Etude) -> None:
    assert etude("bench", "-o", "r", "-r", "2", "--export", "hyperfine", "--export", "go=x.txt", "a") == 0
    assert json.loads(Path("r/hyperfine.json").read_text())["results"]
    assert Path("x.txt").read_text()
