"""The right commit with its probability, none, or what is known so far; and what other verbs make of the results."""

from __future__ import annotations

import json
import subprocess
import tarfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.bisections import EXACT, SHOWN, Bisect
from support.c_history import BUILD, PROGRAM, CHistory, c_history, git
from support.pages import IMAGE, SCRIPT, SPECIALS
from support.real import called, experiment, one_line

pytestmark = [
    pytest.mark.needs_program("git"),
    pytest.mark.needs_program("gcc"),
    pytest.mark.needs_program("make"),
]


class Tags(HTMLParser):
    """Elements of a page with their attributes, and whether each that was opened is closed."""

    VOID = frozenset({"meta", "link", "br", "img", "input", "hr", "path", "line", "rect", "circle", "use"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def measured(history: CHistory, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """The results of a bisection by CPU time, and its JSON; a page beside them."""
    here = tmp_path_factory.mktemp("measured")
    words = (
        "--build",
        BUILD,
        "--metric",
        "user",
        "--confidence",
        "99.5",
        "-o",
        "results",
        "--page",
        "page.html",
    )
    document = Bisect(here)(history, *words, "--", f"./{PROGRAM}")
    return here / "results", document


def test_the_commit_is_found_by_its_cpu_time(
    history: CHistory, measured: tuple[Path, dict[str, object]]
) -> None:
    results, found = measured
    assert (found["format"], found["version"], found["answer"]) == ("etude-bisect", 1, "commit")
    assert found["commits"] == [history.commits[history.step_at]]
    assert found["probability"] >= found["confidence"] == 0.995
    assert 0.10 < found["step"]["size"] < 0.30
    posterior = {each["commit"]: each for each in found["posterior"]}
    assert list(posterior) == [sha for sha in history.commits if sha in posterior]
    assert sum(each["probability"] for each in posterior.values()) + found["none"] + found[
        "drift"
    ] == pytest.approx(1, abs=1e-4)
    assert sum(each["trials"] for each in posterior.values()) == found["trials"]
    # Trials are interleaved: GOOD and BAD run in most blocks, and no commit but these before them.
    stored = experiment(results)
    assert stored["plan"]["kind"] == "bisect"
    assert {test["parameters"]["commit"] for test in stored["tests"]} >= {
        history.commits[0],
        history.commits[-1],
    }
    assert found["builds"] == len(stored["bisect"]["builds"])
    assert found["building_s"] > 0.0
    assert found["measuring_s"] > 0.0


def test_a_finished_one_is_shown_again_without_its_repository(
    measured: tuple[Path, dict[str, object]], bisect: Bisect
) -> None:
    results, found = measured
    before = (results / "experiment.json").read_bytes()
    document = experiment(results)
    document["plan"]["request"]["repository"] = "/nowhere"
    moved = bisect.here / "moved"
    moved.mkdir()
    (moved / "experiment.json").write_text(json.dumps(document))
    for test in document["tests"]:
        (moved / test["directory"]).mkdir()
        rows = (results / test["directory"] / "results.jsonl").read_bytes()
        (moved / test["directory"] / "results.jsonl").write_bytes(rows)
    assert bisect.run("--resume", "moved") == found
    assert bisect.run("--resume", str(results)) == found
    assert (results / "experiment.json").read_bytes() == before


def test_git_replays_the_log(
    history: CHistory, measured: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--no-hardlinks", str(history.repository), str(clone))
    git(clone, "bisect", "replay", str(measured[0] / "bisect.log"))
    assert git(clone, "rev-parse", "refs/bisect/bad") == history.commits[history.step_at]
    assert git(clone, "rev-list", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*", "--count") == "1"


def test_other_verbs_read_the_results(
    history: CHistory, measured: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    results, _ = measured
    sha = history.commits[history.step_at]
    stats = json.loads(called("stats", "--json", str(results), cwd=tmp_path).stdout)
    assert json.dumps(stats).count('"user"') > 0
    called("report", str(results), "-o", "report.html", cwd=tmp_path)
    called("report", str(results), "-o", "report.md", cwd=tmp_path)
    called("plot", str(results), "-o", "figure.svg", "--data", "data", cwd=tmp_path)
    called("bundle", str(results), "-o", "bundle.tar.gz", cwd=tmp_path)
    called("report", "bundle.tar.gz", "-o", "bundled.html", cwd=tmp_path)
    for name in ("report.html", "report.md", "bundled.html"):
        assert sha[:12] in (tmp_path / name).read_text()
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")
    with tarfile.open(tmp_path / "bundle.tar.gz") as archive:
        names = archive.getnames()
    assert any(name.endswith("/bisect.log") for name in names)
    assert not any(PROGRAM in Path(name).name or "/builds" in name for name in names)
    one_line(called("store", "add", str(results), "--store", "s.sqlite", cwd=tmp_path, check=3).stderr)
    one_line(called("bench", "--resume", str(results), cwd=tmp_path, check=3).stderr)


def test_the_page_is_whole(measured: tuple[Path, dict[str, object]]) -> None:
    page = Tags((measured[0].parent / "page.html").read_text())
    assert {"title", "h1", "table", "img"} <= {tag for tag, _ in page.found}
    # It opens offline: nothing is loaded from anywhere.
    loaded = [
        str(a.get("src") or a.get("href"))
        for tag, a in page.found
        if tag in ("script", "img", "link", "iframe") and (a.get("src") or a.get("href"))
    ]
    assert [place for place in loaded if not place.startswith("data:")] == []


def test_no_step_is_1(history: CHistory, bisect: Bisect) -> None:
    before = history.commits[history.slower_at - 1]
    found = bisect(history, *EXACT, "-o", "results", *SHOWN, check=1, bad=before)
    assert (found["answer"], found["commits"]) == ("none", [])
    assert found["none"] >= 0.95
    assert called("report", "results", "-o", "p.html", cwd=bisect.here).returncode == 0


def test_a_budget_ends_it_undecided_and_resuming_with_more_decides(history: CHistory, bisect: Bisect) -> None:
    found = bisect(history, *EXACT, "-o", "results", "--budget", "10ms", *SHOWN, check=8)
    assert found["answer"] == "undecided"
    assert len(found["commits"]) > 1
    called("report", "results", "-o", "p.html", cwd=bisect.here)
    assert bisect.run("--resume", "results", check=8)["answer"] == "undecided"
    again = bisect.run("--resume", "results", "--budget", "1h")
    assert again["commits"] == [history.commits[history.step_at]]
    assert again["trials"] > found["trials"]


def test_a_step_at_a_merge_is_that_of_git_along_first_parents(tmp_path: Path, bisect: Bisect) -> None:
    made = c_history(tmp_path / "merging", commits=32, step_percent=20.0, step_at=16, broken=())
    assert made.merge_at == made.step_at
    found = bisect(made, *EXACT, "-o", "results", *SHOWN)
    assert found["commits"] == [made.commits[16]]
    git(made.repository, "bisect", "replay", str(bisect.here / "results" / "bisect.log"))
    assert git(made.repository, "rev-parse", "refs/bisect/bad") == made.commits[16]
    said = git(made.repository, "bisect", "log")
    assert said.splitlines()[-1].startswith(f"# first bad commit: [{made.commits[16]}]")


def test_several_processes_may_share_the_builds(history: CHistory, bisect: Bisect) -> None:
    first = bisect(history, *EXACT, "-o", "one", "--builds", "kept", *SHOWN)
    second = bisect(history, *EXACT, "-o", "two", "--builds", "kept", *SHOWN)
    assert second["commits"] == first["commits"]
    assert first["building_s"] > 0.0 == second["building_s"]


HOSTILE = (
    SCRIPT,
    IMAGE,
    SPECIALS,
    "\x1b[2J\x1b]0;x\x07",
    "'; touch here; '",
    "$(touch here)",
    "\u202eabc",
    "x" * 5000,
)


def test_subjects_and_names_are_only_text(tmp_path: Path, bisect: Bisect) -> None:
    place = tmp_path / "it's $(touch here) <b>"
    place.mkdir()
    git(place, "init", "--quiet", "--template=", "-b", "main")
    script = b""
    for number in range(16):
        subject = HOSTILE[number % len(HOSTILE)].encode() if number != 9 else b"\xff\xfe no UTF-8"
        content = b"ROUNDS %d\n" % (1000 if number < 8 else 1200)
        script += b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\n" % (1_767_225_600 + number)
        script += b"data %d\n%b\nM 100644 inline rounds.h\ndata %d\n%b\n" % (
            len(subject),
            subject,
            len(content),
            content,
        )
        name = b'"\\"; touch here; <b>\\t\\377"'
        script += b"M 100644 inline %b\ndata 2\nx\n\n" % name
    git(place, "fast-import", "--quiet", given=script)
    branch = "a'b$(touch_here)"
    git(place, "branch", branch, "main~15")
    shas = git(place, "rev-list", "--reverse", "main").split()
    words = (branch, "main", "--repository", str(place), *EXACT, "-o", "results", "--page", "page.html")
    found = bisect.run(*words, *SHOWN)
    assert found["commits"] == [shas[8]]
    screen = called("bisect", "--resume", "results", cwd=bisect.here)
    assert "\x1b" not in screen.stdout + screen.stderr
    called("report", "results", "-o", "report.html", cwd=bisect.here)
    for name in ("page.html", "report.html"):
        text = (bisect.here / name).read_text()
        page = Tags(text)
        assert SCRIPT not in text
        assert not any(word.startswith("on") for _, a in page.found for word in a)
        assert not any(str(a.get("src")).startswith("http") for _, a in page.found)
        assert not any(tag == "b" for tag, _ in page.found)
    log = (bisect.here / "results" / "bisect.log").read_text()
    git(place, "bisect", "replay", str(bisect.here / "results" / "bisect.log"))
    assert "\x1b" not in log
    assert [*tmp_path.rglob("here")] == [bisect.here]
    assert not (place / "here").exists()


def test_nothing_runs_in_the_users_checkout(history: CHistory, bisect: Bisect) -> None:
    """The command runs in the built tree, with the commit's SHA in its environment."""
    words = (
        *EXACT,
        "-o",
        "results",
        "--",
        "sh",
        "-c",
        'pwd; echo "$ETUDE_COMMIT"; git rev-parse HEAD; cat rounds.h',
    )
    found = bisect(history, *words)
    assert found["commits"] == [history.commits[history.step_at]]
    for file in (bisect.here / "results").glob("*/results.jsonl"):
        (first, *_) = [json.loads(line) for line in file.read_text().splitlines()]
        told = first["stdout"]["tail"].split()
        assert told[0].startswith(str(bisect.here / "results" / "builds"))
        assert told[1] == told[2] != ""


def test_a_program_of_its_own_starts_the_same(history: CHistory, tmp_path: Path) -> None:
    """As users start it, from the repository itself."""
    program = [str(Path(subprocess.sys.executable).parent / "etude"), "bisect", "v1", "main", *EXACT]
    done = subprocess.run(
        [*program, "-o", str(tmp_path / "r"), "--json", *SHOWN],
        cwd=history.repository,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["commits"] == [history.commits[history.step_at]]
    assert done.stderr.count("\n") > 4, "progress"
