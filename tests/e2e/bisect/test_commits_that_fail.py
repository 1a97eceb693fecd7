"""Commits that do not build, crash or lack the metric are skipped; GOOD and BAD end it with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.bisections import EXACT, SHOWN, Bisect
from support.c_history import BUILD, PROGRAM, CHistory, c_history, git
from support.real import called, one_line
from support.untouched import snapshot

pytestmark = [
    pytest.mark.needs_program("git"),
    pytest.mark.needs_program("gcc"),
    pytest.mark.needs_program("make"),
]


def skipped(found: dict[str, object]) -> set[str]:
    return {each["commit"] for each in found["skipped"]}


def test_broken_builds_beside_the_step_leave_a_range(tmp_path: Path, bisect: Bisect) -> None:
    made = c_history(tmp_path / "r", commits=32, step_percent=20.0, step_at=20, broken=(18, 19, 20))
    before = snapshot(made.repository)
    words = ("--build", BUILD, "--metric", r"rounds=ROUNDS (\d+)", "-o", "results")
    found = bisect(made, *words, "--builds", "kept", *SHOWN)
    assert found["answer"] == "range"
    assert found["commits"] == list(made.commits[18:22])
    assert skipped(found) == set(made.commits[18:21])
    assert all(each["why"] for each in found["skipped"])
    assert snapshot(made.repository) == before
    # They are shown, and stored: git skips them too.
    assert bisect.run("--resume", "results") == found
    log = (bisect.here / "results" / "bisect.log").read_text()
    assert log.count("git bisect skip ") == 3
    # Another bisection with the same builds knows them.
    again = bisect(made, *words[:-1], "again", "--builds", "kept", *SHOWN)
    assert (again["commits"], skipped(again)) == (found["commits"], skipped(found))
    assert again["building_s"] == 0.0


def test_commits_that_crash_or_take_too_long_are_skipped(history: CHistory, bisect: Bisect) -> None:
    crashing, hanging = history.commits[18], history.commits[22]
    crash = f"{crashing}) echo no luck >&2; kill -SEGV $$;;"
    command = f"case $ETUDE_COMMIT in {crash} {hanging}) sleep 100;; esac; cat rounds.h"
    words = (*EXACT, "-o", "results", "--timeout", "2s", "--", "sh", "-c", command)
    found = bisect(history, *words)
    assert found["commits"] == [history.commits[history.step_at]]
    assert skipped(found) <= {crashing, hanging}
    assert bisect.run("--resume", "results") == found


def test_a_metric_that_old_commits_do_not_print_is_looked_for_in_later_ones(
    tmp_path: Path, bisect: Bisect
) -> None:
    made = c_history(tmp_path / "r", commits=32, step_percent=20.0, step_at=20, broken=())
    old = " ".join(made.commits[1:19])
    command = f'case " {old} " in *" $ETUDE_COMMIT "*) ;; *) cat rounds.h;; esac'
    found = bisect(made, *EXACT, "-o", "results", "--", "sh", "-c", command)
    assert found["commits"] == [made.commits[20]]
    assert skipped(found) <= set(made.commits[1:19])
    assert len(skipped(found)) > 0
    assert bisect.run("--resume", "results") == found


@pytest.mark.parametrize("end", [0, -1])
def test_good_or_bad_without_the_metric_is_3(history: CHistory, bisect: Bisect, end: int) -> None:
    command = f'test "$ETUDE_COMMIT" = {history.commits[end]} || cat rounds.h'
    said = one_line(bisect.refused(history, *EXACT, "-o", "results", "--", "sh", "-c", command, check=3))
    assert history.commits[end][:12] in said
    # What is on disk can be read; once the metric is there, it goes on.
    called("bisect", "--resume", "results", cwd=bisect.here, check=3)


def test_a_metric_of_zero_is_3(history: CHistory, bisect: Bisect) -> None:
    words = ("--build", "true", "--metric", r"x=x (\d+)", "-o", "results", "--", "echo", "x 0")
    one_line(bisect.refused(history, *words, check=3))
    one_line(called("report", "results", cwd=bisect.here, check=3).stderr)


@pytest.mark.parametrize("end", [0, -1])
def test_good_or_bad_that_does_not_build_is_4(history: CHistory, bisect: Bisect, end: int) -> None:
    line = f'test "$ETUDE_COMMIT" != {history.commits[end]} || {{ echo no such header; exit 7; }}'
    words = ("--build", line, "--metric", r"rounds=ROUNDS (\d+)", "-o", "results", *SHOWN)
    said = one_line(bisect.refused(history, *words, check=4))
    assert history.commits[end][:12] in said
    log = Path(said[said.rindex("(") + 1 : said.rindex(")")])
    assert log.read_text() == "no such header\n"
    called("report", "results", "-o", "r.html", cwd=bisect.here)


def test_a_build_that_takes_too_long_is_skipped_and_of_good_is_4(history: CHistory, bisect: Bisect) -> None:
    hanging = history.commits[18]
    line = f'test "$ETUDE_COMMIT" != {hanging} || sleep 100'
    words = ("--build", line, "--build-timeout", "2s", "--metric", r"rounds=ROUNDS (\d+)")
    found = bisect(history, *words, "--seed", "1", "-o", "results", *SHOWN)
    assert found["commits"] == [history.commits[history.step_at]]
    assert skipped(found) <= {hanging}
    one_line(bisect.refused(history, *words, "-o", "other", *SHOWN, check=4, good=hanging))


@pytest.mark.parametrize(
    ("command", "code"),
    [(("false",), 4), (("./missing",), 4), (("sh", "-c", "kill -9 $$"), 4)],
    ids=["1", "none", "9"],
)
def test_a_command_that_fails_at_good_is_4(
    history: CHistory, bisect: Bisect, command: tuple[str, ...], code: int
) -> None:
    words = ("--build", "true", "-o", "results", "--", *command)
    said = one_line(bisect.refused(history, *words, check=code))
    assert said.count(history.commits[0][:12]) + said.count(history.commits[-1][:12]) == 1
    assert "--ignore" not in said, "an option of another verb"
    called("report", "results", "-o", "r.html", cwd=bisect.here)
    one_line(called("bisect", "-q", "--resume", "results", cwd=bisect.here, check=code).stderr)


def test_a_command_that_changes_its_tree_is_noted(history: CHistory, bisect: Bisect) -> None:
    command = "echo >> main.c; echo new > new.txt; cat rounds.h"
    found = bisect(history, *EXACT, "-o", "results", "--", "sh", "-c", command)
    assert found["commits"] == [history.commits[history.step_at]]
    changed = [note.split()[1].rstrip(":") for note in found["notes"] if note.startswith("changed ")]
    assert {history.commits[0][:12], history.commits[-1][:12]} <= set(changed)
    assert all(note.endswith(": main.c") for note in found["notes"])
    assert bisect.run("--resume", "results")["notes"] == found["notes"]


def test_a_build_that_writes_into_the_users_checkout_is_noted_and_does_not(
    history: CHistory, bisect: Bisect
) -> None:
    line = f"echo new > {history.repository}/new.txt; git -C {history.repository} tag -f other HEAD; true"
    found = bisect(history, "--build", line, "--metric", r"rounds=ROUNDS (\d+)", "-o", "results", *SHOWN)
    assert found["commits"] == [history.commits[history.step_at]]
    assert any(note.startswith("outside ") for note in found["notes"])


def test_uncommitted_changes_are_noted(tmp_path: Path, bisect: Bisect) -> None:
    made = c_history(tmp_path / "r", commits=16, step_percent=20.0)
    (made.repository / "main.c").write_text("changed\n")
    before = snapshot(made.repository)
    found = bisect(made, *EXACT, "-o", "results", *SHOWN)
    assert found["notes"] == ["dirty"]
    assert snapshot(made.repository) == before


def test_results_within_the_repository_leave_its_own_files_alone(tmp_path: Path) -> None:
    """The usual place of results is below the working directory, often the repository itself."""
    made = c_history(tmp_path / "r", commits=16, step_percent=20.0)
    before = snapshot(made.repository)
    words = ("bisect", "-q", "--json", "v1", "main", *EXACT, *SHOWN)
    found = json.loads(called(*words, cwd=made.repository).stdout)
    assert found["commits"] == [made.commits[made.step_at]]
    after = {
        path: facts
        for path, facts in snapshot(made.repository).items()
        if not path.startswith("etude-results")
    }
    assert {path: facts for path, facts in after.items() if path} == {p: f for p, f in before.items() if p}
    assert git(made.repository, "status", "--porcelain") == "?? etude-results/"


def test_builds_beyond_the_cache_are_removed_and_made_again(history: CHistory, bisect: Bisect) -> None:
    line = f"{BUILD} && head -c 1M /dev/zero > ballast"
    words = (
        "--build",
        line,
        "--metric",
        r"rounds=ROUNDS (\d+)",
        "--seed",
        "1",
        "--cache",
        "4M",
        "-o",
        "results",
    )
    found = bisect(history, *words, *SHOWN)
    assert found["commits"] == [history.commits[history.step_at]]
    kept = list((bisect.here / "results" / "builds").glob(f"*/{PROGRAM}"))
    assert 2 <= len(kept) <= 4 < found["builds"]
