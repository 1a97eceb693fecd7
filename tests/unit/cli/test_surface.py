"""`etude surface`: what it says, what it keeps, how it ends; on simulated servers and on commands of a made world."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.cli.analyse.report import parts_of
from etude.cluster import worker
from etude.errors import MachineRefuses
from etude.machine.resources.table import Quota
from etude.surface.configuration_jobs import ConfigurationJobs, read_sample
from etude.surface.map_store import MapStore
from etude.surface.next_configuration import Visit
from etude.surface.peaks import PeakRate, simulated_response
from support.charting import lines
from support.fakes import World
from support.golden import Golden

Etude = Callable[..., int]
SPEC = """
[response]
command = "work {n} {kind}"
[factor.n]
levels = [1, 10]
scale = "log"
[factor.kind]
levels = ["x", "y"]
"""


@pytest.fixture
def spec(world: World) -> Path:
    """SPEC.toml of a command that takes 15 ms everywhere."""
    path = Path("spec.toml")
    path.write_text(SPEC)
    return path


def simulated(etude: Etude, *arguments: str) -> int:
    return etude("surface", "--simulate", "DB_TP", "--count", "4", "-o", "r", *arguments)


WRONG = {
    "no budget": (("--simulate", "Web", "--budget", "0"), 2, "argument --budget: '0'"),
    "an endless budget": (("--simulate", "Web", "--budget", "367 days"), 2, "expected at most 366 d"),
    "nothing": ((), 2, "expected SPEC.toml, "),
    "both": (
        ("spec.toml", "--simulate", "Web"),
        2,
        "--simulate replaces",
    ),
    "no such surface": (
        ("--simulate", "Nothing"),
        2,
        "--simulate Nothing: ",
    ),
    "no such file": (("none.toml",), 3, "etude: none.toml: cannot be read"),
    "a directory": ((".",), 3, "etude: .: is a directory"),
    "more than all": (
        ("--simulate", "DB_TP", "--count", "33"),
        2,
        "--count is 33: ",
    ),
    "a design": (("--simulate", "DB_TP", "--plan", "d-optimal"), 2, "--plan d-optimal"),
    "adaptive": (
        ("--simulate", "DB_TP", "--plan", "adaptive"),
        2,
        "--plan adaptive",
    ),
    "an error": (("--simulate", "DB_TP", "--error", "5%"), 2, "--error is for"),
    "skip": (("--simulate", "DB_TP", "--plan", "in-order", "--skip"), 2, "--skip is not"),
    "count": (("--simulate", "DB_TP", "--count", "0"), 2, "--count"),
    "no harness": (("harness.toml",), 3, "none.toml: cannot be read"),
    "a rehearsal of a metric": (("spec.toml", "--rehearse"), 2, "--rehearse is for surfaces of peak rates"),
    "a rehearsal that is kept": (("harness.toml", "--rehearse", "-o", "r"), 2, "leave out -o"),
    "a rehearsal of a simulation": (("--simulate", "Web", "--rehearse"), 2, "leave out --simulate"),
    "a rehearsal without a harness": (("harness.toml", "--rehearse"), 3, "none.toml: cannot be read"),
    "maps without a rehearsal": (("spec.toml", "--maps", "3"), 2, "--maps is for --rehearse"),
    "like nothing": (("spec.toml", "--like", "r"), 2, "--like is for --rehearse"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant_is_one_line(
    name: str, etude: Etude, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("harness.toml").write_text(SPEC.replace('command = "work {n} {kind}"', 'peak = "none.toml"'))
    arguments, code, said = WRONG[name]
    assert etude("surface", *arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.count("etude") >= 1
    assert "Traceback" not in shown.err
    assert not Path("etude-results").exists(), "nothing is left by it"


PEAKS = """
[response]
peak = "server.toml"
[factor.n]
levels = [1, 2, 4]
scale = "log"
"""
SERVER = """
[goal]
mean = "40 ms"
[load]
lowest = 50
highest = 5000
[commands]
load = "serve {n} {load}"
warmup = "4 s"
[reader]
kind = "windows"
[factors]
n = 1
"""


def test_a_rehearsal_says_what_a_map_costs_with_the_costs_of_its_harness(
    etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    Path("peaks.toml").write_text(PEAKS)
    Path("server.toml").write_text(SERVER)
    words = ("surface", "peaks.toml", "--rehearse", "--maps", "2")
    assert etude(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)["rehearsal"]
    assert (found["cells"], found["fixed_cost_s"], len(found["maps"])) == (3, 5.0, 2)
    assert all(each["measured"] == 3 and each["bench_s"] > 5 * each["trials"] for each in found["maps"])
    assert etude(*words, "--fixed-cost", "100", "--json") == 0
    dear = json.loads(capsys.readouterr().out)["rehearsal"]
    assert all(d["bench_s"] > c["bench_s"] for d, c in zip(dear["maps"], found["maps"], strict=True))
    assert etude(*words) == 0
    golden(capsys.readouterr().out)
    assert not Path("etude-results").exists(), "nothing is kept"


def test_a_surface_of_commands_is_measured_shown_and_shown_again(
    etude: Etude, spec: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert etude("surface", str(spec), "-o", "r") == 0
    shown = capsys.readouterr()
    rows = [line.split(":")[0].split() for line in shown.err.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3", "4"]
    assert {" ".join(row[1:]) for row in rows} == {"n=1 kind=x", "n=1 kind=y", "n=10 kind=x", "n=10 kind=y"}
    first, second, *_ = shown.out.splitlines()
    assert first.startswith("Ended: every configuration ")
    assert second.startswith("elapsed (s), 95 % ")
    golden(f"{first}\n{second}")
    assert "4 of 4 configurations measured" in shown.out
    assert etude("surface", "r") == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (shown.out, "")


def test_each_cell_is_a_line_with_its_experiment_beside_it(etude: Etude, spec: Path) -> None:
    assert etude("surface", str(spec), "-o", "r", "-q") == 0
    assert [line["surface"]["order"] for line in lines(Path("r"))] == [1, 2, 3, 4]
    assert all(
        (file.parent / "measured" / "experiment.json").exists() for file in Path("r").glob("*/results.jsonl")
    )


def test_a_map_says_first_that_it_is_simulated_or_was_interrupted(
    etude: Etude, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated(etude, "-q")
    assert capsys.readouterr().out.lower().startswith("simulated")
    assert etude("surface", str(spec), "-o", "m", "-q") == 0
    file = Path("m/experiment.json")
    document = json.loads(file.read_text())
    file.write_text(json.dumps({name: value for name, value in document.items() if name != "surface"}))
    capsys.readouterr()
    assert etude("surface", "m") == 1
    assert "-o m " in capsys.readouterr().out.splitlines()[0]
    assert etude("surface", "--json", "m") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ended"], found["simulated"], found["status"]) == (None, False, ["unfinished"])


def test_the_first_line_of_a_map_has_the_words_of_its_cells_and_sessions(
    etude: Etude, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated(etude, "-q", "--budget", "1s")
    capsys.readouterr()
    simulated(etude, "-q")
    first = capsys.readouterr().out.splitlines()[0]
    assert etude("surface", "--json", "r") == 1
    status = json.loads(capsys.readouterr().out)["status"]
    assert status == ["simulated", "not converged", "resumed"]
    assert "; ".join(status) in first.lower()


def test_quietly_it_says_only_the_surface(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    simulated(etude, "-q")
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "peak rate (1/s)" in shown.out


def test_the_same_command_goes_on_and_measures_nothing_twice(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated(etude, "--count", "1")
    capsys.readouterr()
    simulated(etude)
    rows = capsys.readouterr().err.splitlines()
    assert " after 1 configuration, " in rows[0]
    assert [row.split()[0] for row in rows[1:]] == ["2", "3", "4"]
    assert simulated(etude, "--simulate", "Web") == 3
    refused = capsys.readouterr().err
    assert refused.startswith("etude: r: ")
    assert "another map" in refused


def test_the_document_has_all_cells_and_how_it_ended(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    code = simulated(etude, "--json", "--target", "200")
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["version"], document["name"]) == ("etude-surface", 1, "DB_TP")
    assert document["ended"].startswith("4 configurations ")
    assert document["results"] == "r"
    states = [cell["state"] for cell in document["cells"]]
    assert (states.count("measured"), states.count("predicted")) == (4, 28)
    assert document["break_evens"]
    kept = [cell["kept"] for cell in document["cells"] if cell["state"] == "measured"]
    assert code == (0 if all(kept) else 1)


def test_figures_are_drawn_and_named(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    simulated(etude, "-q", "--figures", "f", "--format", "png")
    names = {path.name for path in Path("f").iterdir()}
    assert {"surface.png", "map.png", "effects.png"} <= names
    assert "f/surface.png" in capsys.readouterr().out


def test_a_cell_that_fails_is_exit_status_1_and_can_be_tried_again(
    etude: Etude, spec: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    good = world.times["/bin/sh"]

    def failing(launch: object) -> dict[str, object]:
        return {"exit_status": 3} if "work 10 y" in str(launch) else {}

    world.times = {"/bin/sh": failing}
    assert etude("surface", str(spec), "-o", "r") == 1
    shown = capsys.readouterr()
    assert "n=10 kind=y: failed" in shown.err
    assert "3 of 4 configurations measured" in shown.out
    world.times = {"/bin/sh": good}
    assert etude("surface", str(spec), "-o", "r") == 1, "not asked to"
    assert etude("surface", str(spec), "-o", "r", "--retry") == 0
    assert etude("surface", "r") == 0
    assert len(lines(Path("r"))) == 5


def test_a_command_that_never_works_ends_it_in_one_line(
    etude: Etude, spec: Path, world: World, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    world.times = {"/bin/sh": {"exit_status": 127}}
    assert etude("surface", str(spec), "-o", "r", "-q") == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("etude: ")
    assert all(
        part in line for part in ("3 configurations", "status 127", "2 configurations on disk", "-o r ")
    )
    golden(line)


@pytest.mark.parametrize(("error", "code", "said"), [
    (KeyboardInterrupt(), 130, "SIGINT; 2 configurations on disk"),
    (MachineRefuses("no space left"), 5, "no space left; 2 configurations on disk"),
], ids=["interrupt", "refused"])  # fmt: skip
def test_whatever_ends_it_the_cells_are_kept(
    etude: Etude, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int,
    said: str,
) -> None:  # fmt: skip
    keep, measure = MapStore.keep, PeakRate.measure

    def broken(*arguments: object) -> object:
        if len(lines(Path("r"))) == 2:
            raise error
        return (measure if isinstance(error, KeyboardInterrupt) else keep)(*arguments)  # type: ignore[arg-type]

    if isinstance(error, KeyboardInterrupt):
        monkeypatch.setattr(PeakRate, "measure", broken)
    else:
        monkeypatch.setattr(MapStore, "keep", broken)
    assert simulated(etude, "-q") == code
    shown = capsys.readouterr()
    assert said in shown.err
    assert "-o r " in shown.err
    assert shown.out == ""
    here = Path.cwd()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    simulated(etude, "-q")
    assert len(lines(Path("r"))) == 4


def test_a_deadline_that_has_come_measures_nothing(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulated(etude, "--deadline", "2001-01-01T00:00") == 1
    assert "deadline" in capsys.readouterr().out


def test_a_budget_ends_it(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    simulated(etude, "--budget", "20m", "-q")
    assert "budget" in capsys.readouterr().out
    assert 0 < len(lines(Path("r"))) < 4


def test_a_resource_that_cannot_be_set_here_is_said_before_anything_is_measured(
    etude: Etude, spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(SPEC + '[factor.cpu]\nresource = "quota"\nlevels = [0.5, 1]\n')
    monkeypatch.setattr(Quota, "check", lambda self: "only for root")
    assert etude("surface", str(spec), "-o", "r") == 2
    refused = capsys.readouterr().err
    assert refused.startswith("etude: spec.toml: factor cpu ")
    assert refused.endswith(": only for root\n")
    assert not Path("r").exists()


def test_results_of_another_kind_are_one_line(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    etude("peak", "--simulate", "mm1:700", "-o", "p", "-q")
    capsys.readouterr()
    for arguments in (("p",), ("--simulate", "DB_TP", "-o", "p")):
        assert etude("surface", *arguments) == 3
        refused = capsys.readouterr().err
        assert refused.startswith("etude: p: ")
        assert "etude peak" in refused
    assert etude("peak", "p", "-q") == 0


def test_a_stored_surface_is_read_by_the_other_verbs(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated(etude, "-q")
    capsys.readouterr()
    assert etude("stats", "r", "--metric", "peak_rate") == 0
    assert "peak_rate" in capsys.readouterr().out
    assert etude("plot", "r", "--metric", "peak_rate", "-o", "bars.png") == 0
    assert Path("bars.png").exists()
    capsys.readouterr()
    assert etude("report", "r", "--format", "markdown") == 0
    text = capsys.readouterr().out
    assert "### Surface" in text
    assert "(peak rate (1/s))**" in text
    (part,) = parts_of(["r"])
    assert (part.key, part.heading) == ("surface-0", "Surface")
    assert [each.heading for each in parts_of(["r", "r"])] == ["Surface of r", "Surface of r"]
    assert etude("report", "r") == 0
    assert '<section id="surface-0"' in Path("r", "report.html").read_text()


QUOTA = '[factor.n]\nlevels = [1]\nresource = "quota"\n'
HARNESS = (
    '[goal]\nmean = "40 ms"\n[load]\nlowest = 1\nhighest = 9\n[reader]\nkind = "windows"\n[factors]\nn = 1\n'
    '[commands]\napart = true\nstart = "s"\nload = "l {server} {load} {n}"\n'
)
REFUSED = {
    "a peak": (
        '[response]\npeak = "h.toml"\n[factor.n]\nlevels = [1]\n', "slurm,etude=copied", "peak rate"
    ),
    "a script": (
        '[response]\nscript = "s.ap"\n[factor.n]\nlevels = [1]\n', "slurm,etude=copied", "elapsed"
    ),
    "a resource": ('[response]\ncommand = "true"\n' + QUOTA, "slurm,etude=copied", "factor n (a resource)"),
    "a resource of one of two nodes": (
        '[response]\npeak = "h.toml"\n' + QUOTA, "slurm", "factor n is"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_nodes_of_the_pool_cannot_do_is_one_line_before_any_job(
    what: str, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, pool, said = REFUSED[what]
    for name, text in (("spec.toml", spec), ("h.toml", HARNESS), ("s.ap", "TEST t 1\n  EXEC true\nDONE\n")):
        Path(name).write_text(text)
    assert etude("surface", "spec.toml", "-o", "r", "--pool", pool) == 2
    assert said in capsys.readouterr().err
    assert not Path("r").exists()


def test_a_node_that_does_not_see_the_results_measures_its_cell_all_the_same(tmp_path: Path) -> None:
    system, response = simulated_response("DB_TP")
    cells = ConfigurationJobs("x", system.space, response, None, "DB_TP")
    for place in (tmp_path / "cell", tmp_path / "cell" / "attempt-2"):
        cells.job(Visit((0, 0), None, None, "the first"), place, None)
        assert worker.run_part(place) == 0
        sample = read_sample(place, system.space)
        assert sample is not None
        assert sample.state == "measured"


def test_of_a_map_without_a_value_no_effects_are_told(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    simulated(etude, "-q", "--budget", "1s")
    told = capsys.readouterr().out
    assert "Optimum" in told
    assert "Main effects" not in told
