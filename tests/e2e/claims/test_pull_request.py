"""The CI job of claims on a local bare repository: what a description asserts is built, measured and commented on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.places import EXAMPLES

pytestmark = pytest.mark.beside

SCRIPT = EXAMPLES / "ci" / "claims.sh"
EXAMPLE = EXAMPLES / "claims" / "pull-request"
DESCRIPTION = """\
This makes the sum of primes faster.

```claims
[experiment.sum]
trials = 40
[experiment.sum.commands]
base = "base/sum 300000"
head = "head/sum 300000"
[claim.faster]
text = "At least 25 % faster"
hold = "ratio(elapsed, head/base) <= 0.75"
```
"""


def git(*arguments: str, cwd: Path) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of a bare repository, with the branches `main` and `change` of the example, and one that is no change."""
    here = tmp_path_factory.mktemp("pull")
    git("init", "--quiet", "--bare", "--initial-branch=main", "origin.git", cwd=here)
    git("clone", "--quiet", "origin.git", "clone", cwd=here)
    clone = here / "clone"
    git("checkout", "--quiet", "-b", "main", cwd=clone)
    (clone / "Makefile").write_text("CFLAGS = -O2\n\nsum: sum.c\n")
    for branch, side in (("main", "base"), ("change", "head")):
        if branch != "main":
            git("checkout", "--quiet", "-b", branch, cwd=clone)
        shutil.copy(EXAMPLE / side / "sum.c", clone / "sum.c")
        git("add", "Makefile", "sum.c", cwd=clone)
        git("commit", "--quiet", "-m", side, cwd=clone)
    (clone / "sum.c").write_text((clone / "sum.c").read_text().replace("sum += n", "sum += 1"))
    git("commit", "--quiet", "-am", "cheat", cwd=clone)
    git("branch", "cheat", cwd=clone)
    git("reset", "--quiet", "--hard", "HEAD~1", cwd=clone)
    git("push", "--quiet", "--all", cwd=clone)
    return clone


def check(clone: Path, text: str, head: str, into: Path) -> tuple[int, str, str]:
    """Exit code, standard error and comment of the job's step."""
    (into / "description").write_text(text)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CLAIMS_BUILD": "make",
        "CLAIMS_DIR": str(into / "made"),
    }
    done = subprocess.run(
        ["bash", SCRIPT, into / "description", "main", head],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr, (into / "made" / "out" / "comment.md").read_text()


def rows(comment: str) -> list[list[str]]:
    lines = [line.strip("| ").split(" | ") for line in comment.splitlines() if line.startswith("|")]
    return lines[2:]


def test_a_claim_that_holds_passes_and_is_a_row_of_the_comment(clone: Path, tmp_path: Path) -> None:
    code, said, comment = check(clone, DESCRIPTION, "change", tmp_path)
    assert code == 0, said
    assert [row[:2] for row in rows(comment)] == [["faster", "supported"]]
    assert (tmp_path / "made" / "out" / "claims.html").stat().st_size > 10_000


def test_a_program_that_prints_something_else_is_refuted_however_fast(clone: Path, tmp_path: Path) -> None:
    code, said, comment = check(clone, DESCRIPTION, "cheat", tmp_path)
    assert code == 1, said
    assert [row[:2] for row in rows(comment)] == [["faster", "refuted"]]


def test_a_change_of_nothing_does_not_support_the_claim(clone: Path, tmp_path: Path) -> None:
    code, said, comment = check(clone, DESCRIPTION, "main", tmp_path)
    assert code in (1, 8), said
    assert rows(comment)[0][1] in ("refuted", "undecided")


def test_a_description_without_claims_passes(clone: Path, tmp_path: Path) -> None:
    code, _, comment = check(clone, "Only words.\n", "change", tmp_path)
    assert code == 0
    assert rows(comment) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(DESCRIPTION.replace("<= 0.75", "<= fast"), "claims.toml:8", id="bound"),
        pytest.param(DESCRIPTION.rstrip().removesuffix("```"), "description", id="open"),
        pytest.param(DESCRIPTION + DESCRIPTION, "description", id="two"),
        pytest.param(DESCRIPTION.replace("```claims", "~~~claims"), "description", id="another fence"),
        pytest.param(DESCRIPTION.replace("```claims", "```Claims"), "description", id="another word"),
        pytest.param(f"<!--\n{DESCRIPTION}-->\n", "description", id="in a comment"),
    ],
)
def test_claims_that_cannot_be_read_are_named_in_the_comment(
    clone: Path, tmp_path: Path, text: str, named: str
) -> None:
    code, _, comment = check(clone, text, "change", tmp_path)
    assert code == 3
    assert named in comment


def test_a_build_that_fails_has_no_verdict(clone: Path, tmp_path: Path) -> None:
    git("checkout", "--quiet", "-b", f"broken-{os.getpid()}", cwd=clone)
    (clone / "sum.c").write_text("int main(void) { return }\n")
    git("commit", "--quiet", "-am", "broken", cwd=clone)
    broken = git("rev-parse", "HEAD", cwd=clone)
    git("checkout", "--quiet", "change", cwd=clone)
    code, said, _ = check(clone, DESCRIPTION, broken, tmp_path)
    assert code == 4
    assert "head" in said
