"""Makes a git repository with the history of a C program whose CPU time has steps. It is the same each time.

    python tests/support/c_history.py DIRECTORY [COMMITS [STEP_PERCENT [STEP_AT]]]     # prints the facts

`make` builds `program`, which takes about 50 ms of CPU time, in proportion to its argument (percent; default 100).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BUILD = "make -s"
PROGRAM = "program"
ROUNDS = 160_000
"""For each percent of the argument."""
CANCELLING_PERCENT = 2.0
BEGIN_S = 1_767_225_600  # 1 January 2026
DAY_S = 86_400
QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
"""Environment in which git has no settings of the user's."""

SOURCE = """#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "rounds.h"

int main(int count, char **words)
{
    long percent = count > 1 ? atol(words[1]) : 100;
    uint64_t state = 88172645463325252u;
    for (long round = 0; round < ROUNDS * percent; round++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state *= 2685821657736338717u;
    }
    printf("%016llx\\n", (unsigned long long)state);
    return 0;
}
"""
MAKEFILE = "CFLAGS = -O2\nprogram: main.c rounds.h\n\t$(CC) $(CFLAGS) -o $@ main.c\n"


@dataclass(frozen=True)
class CHistory:
    """The repository, and where in it something happens: indices into `commits`."""

    repository: Path
    commits: tuple[str, ...]
    """SHAs along first parents, oldest first."""
    side: tuple[str, ...]
    """SHAs of the branch that is merged, which change only text."""
    step_at: int
    """First commit that takes longer for good."""
    slower_at: int
    """First commit of those that take 2 % longer; they end before `faster_at`."""
    faster_at: int
    broken: tuple[int, ...]
    """Commits that do not compile."""
    merge_at: int
    rounds: tuple[int, ...]
    """Work of each commit."""


def git(place: Path, *words: str, given: bytes = b"") -> str:
    """Output of git, with no settings of the user's."""
    command = ["git", "-C", str(place), *words]
    done = subprocess.run(command, input=given, env=os.environ | QUIET, check=True, capture_output=True)
    return os.fsdecode(done.stdout).strip()


def c_history(
    place: Path,
    commits: int = 128,
    step_percent: float = 3.0,
    step_at: int | None = None,
    broken: tuple[int, ...] | None = None,
) -> CHistory:
    """Make the repository in the new directory `place`.

    commits: along first parents, at least 16. step_at: default after five eighths. broken: default three, none beside
    a step.
    """
    step = commits * 5 // 8 if step_at is None else step_at
    slower, faster, merge = commits // 4, commits * 3 // 8, commits // 2
    default = [at for at in (commits // 8 + 1, commits * 7 // 16, commits * 13 // 16) if abs(at - step) > 1]
    bad = tuple(default) if broken is None else broken
    rounds = tuple(
        round(
            ROUNDS
            * (1 + CANCELLING_PERCENT / 100 * (slower <= at < faster))
            * (1 + step_percent / 100 * (at >= step))
        )
        for at in range(commits)
    )
    place.mkdir(parents=True)
    git(place, "init", "--quiet", "--template=", "-b", "main")
    script = "".join(_script(rounds, bad, merge))
    git(place, "fast-import", "--quiet", "--done", given=script.encode())
    git(place, "reset", "--hard", "--quiet", "main")
    git(place, "tag", "v1", git(place, "rev-list", "--max-parents=0", "main"))
    found = git(place, "rev-list", "--first-parent", "--reverse", "main").split()
    side = git(place, "rev-list", "--reverse", "side", f"^{found[merge - 1]}", "--").split()
    return CHistory(place, tuple(found), tuple(side), step, slower, faster, bad, merge, rounds)


def _script(rounds: tuple[int, ...], broken: tuple[int, ...], merge: int) -> Iterator[str]:
    """Input of git fast-import: marks are 1 more than the index; those of the side branch begin at 10,001."""
    text = "Notes\n"
    fork = max(merge - 4, 0)
    for at, each in enumerate(rounds):
        files: dict[str, str] = {}
        if at == 0:
            files |= {"main.c": SOURCE, "Makefile": MAKEFILE}
        if at == merge:
            for number in range(3):
                files = {f"side-{number}.txt": "text\n"}
                above = f"from :{fork + 1 if number == 0 else 10_000 + number}\n"
                yield _commit("side", 10_001 + number, f"Side {number}", at * DAY_S - 60, above, files)
            files = {f"side-{number}.txt": "text\n" for number in range(3)}
        text += f"Note {at}\n"
        files["notes.txt"] = text
        error = '#error "not yet"\n' if at in broken else ""
        files["rounds.h"] = f"#define ROUNDS {each}L\n{error}"
        above = f"from :{at}\n" if at else ""
        above += "merge :10003\n" if at == merge else ""
        yield _commit("main", at + 1, f"Commit {at}", at * DAY_S, above, files)
    yield "done\n"


def _commit(branch: str, mark: int, subject: str, after_s: int, above: str, files: Mapping[str, str]) -> str:
    who = f"A U Thor <author@example.org> {BEGIN_S + after_s} +0000"
    head = f"commit refs/heads/{branch}\nmark :{mark}\nauthor {who}\ncommitter {who}\n"
    contents = "".join(
        f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}\n" for name, text in files.items()
    )
    return f"{head}data {len(subject)}\n{subject}\n{above}{contents}\n"


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    made = c_history(
        Path(where),
        int(numbers[0]) if numbers else 128,
        float(numbers[1]) if len(numbers) > 1 else 3.0,
        int(numbers[2]) if len(numbers) > 2 else None,
    )
    for label in ("step_at", "slower_at", "faster_at", "broken", "merge_at"):
        print(f"{label}\t{getattr(made, label)}")
    print(f"step\t{made.commits[made.step_at]}")
