"""Commits of a range or a list, and the repositories that have none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from etude.commits.commit_range import commit_range, listed_commits, read_range
from etude.commits.git import commit_sha, open_repository, try_git
from etude.errors import InputError
from support.c_history import CHistory, git
from support.untouched import snapshot

pytestmark = pytest.mark.needs_program("git")
WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org")
HOSTILE = (
    "--upload-pack=touch made",
    "-x",
    "--all",
    "^HEAD",
    "HEAD:n",
    "HEAD^!",
    "",
    "a\0b",
    "\x1b[31mred\x1b[0m",
    "two\nlines",
    "\udcff",
    "x" * 5000,
    "$(touch made)",
)


def refused(place: Path, good: str, bad: str, **options: bool) -> str:
    """The one line of an InputError."""
    with pytest.raises(InputError) as error:
        commit_range(place, good, bad, **options)
    line = str(error.value)
    assert line.isprintable()
    assert len(line) < 500
    return line


def commit(place: Path, subject: str, *words: str) -> str:
    git(place, *WHO, "commit", "--quiet", "--allow-empty", "-m", subject, *words)
    return git(place, "rev-parse", "HEAD")


def test_a_range_is_along_first_parents(history: CHistory) -> None:
    found = commit_range(history.repository, "v1", "main")
    assert tuple(commit.sha for commit in found.commits) == history.commits
    assert (found.good.sha, found.bad.sha) == (history.commits[0], history.commits[-1])
    assert (found.dirty, found.submodules, found.ancestry) == (False, (), False)


def test_ancestry_has_all_commits_parents_first(history: CHistory) -> None:
    found = commit_range(history.repository, "v1", "main", ancestry=True)
    order = [commit.sha for commit in found.commits]
    assert set(order) == {*history.commits, *history.side}
    for number, each in enumerate(found.commits[1:], 1):
        assert set(each.parents) <= set(order[:number])


def test_a_commit_has_its_facts(repository: Path) -> None:
    second = commit_range(repository, "v1", "main").commits[1]
    assert (second.subject, second.author_time_s, second.commit_time_s) == (
        "Number 2",
        1_767_225_602,
        1_767_225_602,
    )
    assert (second.parents, second.name) == ((git(repository, "rev-parse", "v1"),), "")
    assert second.committed.year == 2026


@pytest.mark.parametrize("text", ["v1..main", "v1..", "v1..HEAD", " v1..main\n"])
def test_a_range_is_read(repository: Path, text: str) -> None:
    assert [each.subject[-1] for each in read_range(repository, text).commits] == ["1", "2", "3", "4"]


def test_a_list_keeps_its_order_and_names(repository: Path) -> None:
    found = read_range(repository, f"main,v1 HEAD~2 HEAD {git(repository, 'rev-parse', 'v1')}")
    assert [(each.subject[-1], each.name) for each in found.commits] == [
        ("4", "main"),
        ("1", "v1"),
        ("2", "HEAD~2"),
    ]
    with pytest.raises(InputError):
        listed_commits(repository, [])


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_of_no_commit_is_refused(
    repository: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    refused(repository, name, "main")
    refused(repository, "v1", name)
    assert snapshot(tmp_path) == before


def test_any_subject_and_branch_is_data(repository: Path) -> None:
    subject = "\x1b]0;title\x07 \x85 ‮ -- $(touch made)"
    branch = "x$(x);'é\""
    git(repository, "checkout", "--quiet", "-b", branch)
    made = commit(repository, subject)
    found = commit_range(repository, "v1", branch).bad
    assert (found.sha, found.subject) == (made, subject)


def test_times_that_no_date_has_are_read(repository: Path) -> None:
    # git itself clamps what is larger than its own type.
    script = "commit refs/heads/far\ncommitter A <a@example.org> 99999999999999 +0000\ndata 1\nx\nfrom main\n"
    git(repository, "fast-import", "--quiet", "--date-format=raw-permissive", given=script.encode())
    assert commit_range(repository, "main", "far").bad.committed.year == 9999


def test_a_directory_without_a_repository_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "a", "b")
    refused(tmp_path / "none", "a", "b")


def test_an_excluded_commit_is_none(repository: Path) -> None:
    found = open_repository(repository)
    assert commit_sha(found, "^HEAD") is None
    assert commit_sha(found, "HEAD") == git(repository, "rev-parse", "HEAD")


def test_the_same_commit_is_no_range(repository: Path) -> None:
    assert git(repository, "rev-parse", "--short=12", "main") in refused(repository, "HEAD", "main")


def test_ends_in_the_wrong_order_are_refused(repository: Path) -> None:
    assert git(repository, "rev-parse", "--short=12", "v1") not in refused(repository, "main", "v1")


def test_ends_on_two_branches_are_refused_with_their_merge_base(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "other", "main~1")
    commit(repository, "other")
    assert git(repository, "rev-parse", "--short=12", "main~1") in refused(repository, "other", "main")


def test_histories_with_nothing_in_common_are_refused(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "other")
    commit(repository, "other")
    refused(repository, "other", "main")


def test_good_on_a_merged_branch_needs_ancestry(history: CHistory) -> None:
    fork = history.commits[history.merge_at - 4]
    assert fork[:12] in refused(history.repository, history.side[1], "main")
    found = commit_range(history.repository, history.side[1], "main", ancestry=True)
    assert {each.sha for each in found.commits} == {
        *history.commits[history.merge_at - 3 :],
        *history.side[1:],
    }


def test_good_on_a_merged_root_needs_ancestry(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "other")
    commit(repository, "other")
    git(repository, *WHO, "merge", "--quiet", "--allow-unrelated-histories", "-m", "merge", "main")
    refused(repository, "v1", "other")
    assert len(commit_range(repository, "v1", "other", ancestry=True).commits) == 6


def shallow(history: CHistory, place: Path, depth: int) -> Path:
    source = f"file://{history.repository}"
    subprocess.run(["git", "clone", "-q", "--bare", f"--depth={depth}", source, str(place)], check=True)
    return place


def test_a_range_that_a_shallow_clone_cuts_is_refused(history: CHistory, tmp_path: Path) -> None:
    depth = (
        len(history.commits) - history.merge_at + 2
    )  # down to the second commit before the merge on both sides
    place = shallow(history, tmp_path / "shallow", depth)
    good = history.commits[history.merge_at - 1]
    assert len(commit_range(place, good, "main").commits) == depth - 1
    assert history.side[1][:12] in refused(place, good, "main", ancestry=True)
    refused(place, history.commits[0], "main")
    assert commit_range(place, history.commits[history.merge_at - 2], "main").dirty is None


def test_a_partial_clone_fetches_nothing(history: CHistory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(history.repository, source)
    git(source, "config", "uploadpack.allowFilter", "true")
    git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
    place = tmp_path / "partial"
    words = ["git", "clone", "-q", "--filter=blob:none", f"file://{source}", str(place)]
    subprocess.run(words, check=True)
    before = snapshot(place)
    refused(place, "v1", "main")
    refused(place, "v1", "f" * 40)
    assert try_git(place, "cat-file", "-t", "v1:notes.txt").status
    assert snapshot(place) == before
    # What was checked out is there.
    assert listed_commits(place, ["main"]).bad.sha == history.commits[-1]


def test_files_that_differ_are_noted(repository: Path) -> None:
    assert commit_range(repository, "v1", "main").dirty is False
    (repository / "new").write_text("x")
    assert commit_range(repository, "v1", "main").dirty is False
    (repository / "n").write_text("changed")
    assert commit_range(repository, "v1", "main").dirty is True


def test_a_split_index_is_not_read(repository: Path) -> None:
    git(repository, "update-index", "--split-index")
    commit(repository, "five")
    assert list((repository / ".git").glob("sharedindex.*"))
    before = snapshot(repository)
    assert commit_range(repository, "v1", "main").dirty is None
    assert snapshot(repository) == before


def test_programs_of_the_repository_are_not_run(repository: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {made}\ncat\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "filter.x.clean", "filter.x.process", "gpg.program", "core.pager"):
        git(repository, "config", name, str(program))
    git(repository, "config", "log.showSignature", "true")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (repository / "n").write_text("9\n")
    assert commit_range(repository, "v1", "main").dirty is True
    assert not made.exists()
    git(repository, "status")
    assert made.exists(), "git itself runs them"


def test_submodules_are_named(repository: Path) -> None:
    (repository / ".gitmodules").write_text('[submodule "a b"]\n\tpath = deep/é\n\turl = ../lib\n')
    git(repository, "add", ".gitmodules")
    head = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},deep/é")
    commit(repository, "with a submodule")
    assert commit_range(repository, "v1", "main").submodules == ("deep/é",)
    assert listed_commits(repository, ["v1"]).submodules == ()


def test_a_repository_is_found_from_anywhere_in_it(
    repository: Path, history: CHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "sub").mkdir()
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "--quiet", "--detach", str(linked), "main~1")
    monkeypatch.setenv("GIT_DIR", str(history.repository / ".git"))
    assert open_repository(repository / "sub").path == repository
    assert open_repository(linked).path == linked
    assert open_repository(linked).common_directory == repository / ".git"
    assert len(commit_range(linked, "v1", "HEAD").commits) == 3


def test_replaced_objects_do_not_count(repository: Path) -> None:
    git(repository, "replace", "main~1", "v1")
    assert len(commit_range(repository, "v1", "main").commits) == 4
