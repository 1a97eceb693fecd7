"""The files of examples/ci, run step by step in a bare Debian with Étude's wheel, on a repository of a C program."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bare_root import BareRoot, CannotMake, bare_root
from etude.store.database import open_store
from support.ci_api import Api, serving
from support.ci_jobs import Service, run_github, run_gitlab
from support.made_histories import fill
from support.places import EXAMPLES, ROOT

pytestmark = [pytest.mark.beside, pytest.mark.needs_root, pytest.mark.needs_program("mmdebstrap")]

CI = EXAMPLES / "ci"
PACKAGES = ("gcc", "git", "libc6-dev", "make", "python3", "python3-venv")
ROUNDS = r'--metric "rounds:s=rounds ([0-9]+)" --primary rounds --trials {} --monitor off'
BOUND = {"BENCH_BOUND": "rounds > baseline * 1.14", "BENCH_OPTIONS": ROUNDS.format(10)}
"""The rounds that the program makes, in place of their time: a busy machine changes no verdict."""

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    volatile unsigned long sum = 0;
    unsigned long rounds = atol(argv[1]) * (2000 + getpid() %% 16) * %d / 100;
    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
    printf("rounds %%lu\\n", rounds);
    return argc != 2;
}
"""
FAST, SLOW = SOURCE % 400, SOURCE % 520


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def wheel() -> Path:
    found = sorted(ROOT.glob("dist/*.whl"))
    if not found:
        pytest.skip("dist has no wheel: make wheel")
    return found[-1]


@pytest.fixture(scope="module")
def seen(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel, and this environment's distributions that it requires: pip finds these, and needs no index."""
    linked = tmp_path_factory.mktemp("requirements")
    for each in required_by("etude").values():
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            (linked / top).symlink_to(f"/site/{top}")
    return {
        "/site": Path(str(distribution("numpy").locate_file(""))),
        "/requirements": linked,
        "/wheel": wheel.parent,
    }


def required_by(name: str) -> dict[str, Distribution]:
    waiting, found = (
        [Requirement(each) for each in distribution(name).requires or []],
        dict[str, Distribution](),
    )
    while waiting:
        required = waiting.pop()
        key = canonicalize_name(required.name)
        if key not in found and (required.marker is None or required.marker.evaluate({"extra": ""})):
            found[key] = distribution(key)
            waiting += [Requirement(each) for each in found[key].requires or []]
    return found


@contextmanager
def a_root(directory: Path, seen: dict[str, Path]) -> Iterator[BareRoot]:
    try:
        with bare_root("bookworm", directory, PACKAGES, seen) as root:
            yield root
    except CannotMake as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def installed(
    seen: dict[str, Path], wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Path]]:
    """The same, and an installation in /opt/etude, for jobs whose runner has Étude."""
    with a_root(tmp_path_factory.mktemp("installed"), seen) as root:
        install = f"python3 -m venv /opt/etude && /opt/etude/bin/pip install --quiet /wheel/{wheel.name}"
        root.run("sh", "-c", install, env=REQUIREMENTS)
        yield {**seen, "/opt/etude": root.path("/opt/etude")}


REQUIREMENTS = {"PYTHONPATH": "/requirements", "PIP_NO_INDEX": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def bare(tmp_path: Path, seen: dict[str, Path], wheel: Path) -> Iterator[Service]:
    """A runner without Étude, and the repository."""
    with a_root(tmp_path, seen) as root:
        yield with_repository(Service(root, {**REQUIREMENTS, **BOUND, "ETUDE": f"/wheel/{wheel.name}"}))


@pytest.fixture
def service(tmp_path: Path, installed: dict[str, Path]) -> Iterator[Service]:
    """A runner with Étude, and the repository."""
    with a_root(tmp_path, installed) as root:
        yield with_repository(Service(root, {**REQUIREMENTS, **BOUND}, f"/opt/etude/bin:{Service.path}"))


GIT = "git -C /tree -c user.name=me -c user.email=me@example.org"


def with_repository(service: Service) -> Service:
    """main, and branches that began at its first commit: it is slower itself since."""
    service.root.copy(CI, "/tree/ci")
    service.root.write("/tree/Makefile", "sum: sum.c\n\tcc -O1 -o sum sum.c\n")
    service.shell(
        f"""git init -q --bare -b main /origin.git
        git init -q -b main /tree
        {GIT} commit -q --allow-empty -m empty""",
        "/",
        {},
    )
    push(service, "main", FAST, 1)
    for day, (branch, source) in enumerate(
        {"slower": SLOW, "same": f"{FAST}// the same\n", "broken": "int main("}.items()
    ):
        push(service, branch, source, 2 + day, "main")
    push(service, "main", f"{SLOW}// main\n", 9)
    return service


def push(service: Service, branch: str, source: str, day: int, begin: str = "") -> None:
    """A commit of a day, on a branch that is made at `begin` if that is given."""
    service.root.write("/tmp/sum.c", source)
    when = f"2026-01-{day:02}T12:00:00Z"
    done = service.shell(
        f"""{GIT} checkout -q {f"-B {branch} {begin}" if begin else branch}
        cp /tmp/sum.c sum.c
        export GIT_COMMITTER_DATE={when} GIT_AUTHOR_DATE={when}
        {GIT} add -A && {GIT} commit -q -m {branch} && {GIT} push -q /origin.git {branch}""",
        "/tree",
        {},
    )
    assert done.returncode == 0, done.stderr


def again(service: Service) -> None:
    """Another run has workspaces of its own."""
    service.shell("rm -rf /jobs /runner /artifacts", "/", {})


def test_a_slower_head_fails_the_job_of_github_and_one_comment_has_the_newest_verdict(
    bare: Service, api: Api
) -> None:
    jobs = run_github(CI / "github-actions.yml", bare, "main", "slower", api.url)
    assert (jobs["measure"].code, jobs["comment"].code) == (1, 0), jobs
    (comment,) = api.comments
    assert answer(comment["body"]) == ("1", "")
    assert ratio(comment["body"]) == pytest.approx(1.3, abs=0.02)
    assert bare.root.path("/artifacts/benchmark/sum.html").stat().st_size > 10_000
    again(bare)
    jobs = run_github(CI / "github-actions.yml", bare, "main", "same", api.url)
    assert (jobs["measure"].code, jobs["comment"].code) == (0, 0), jobs
    issue = "/repos/someone/project/issues"
    token = "Bearer of-the-run"
    assert api.writes == [("POST", f"{issue}/7/comments", token), ("PATCH", f"{issue}/comments/0", token)]
    (comment,) = api.comments
    assert answer(comment["body"]) == ("0", "")
    assert ratio(comment["body"]) == pytest.approx(1.0, abs=0.02)


def ratio(comment: str) -> float:
    found = re.search(r"rounds ([0-9.]+) ×", comment)
    assert found, comment
    return float(found[1])


def answer(comment: str) -> tuple[str, str]:
    """The job's exit code, and `undecided`, as the comment has them for programs."""
    found = re.search(r"<!-- code ([0-9]+) ?(\w*) -->", comment)
    assert found, comment
    return found[1], found[2]


def test_the_same_of_gitlab(bare: Service, api: Api) -> None:
    file = CI / "gitlab-ci.yml"
    jobs = run_gitlab(file, bare, "main", "slower", api.url, "secret")
    assert (jobs["measure"].code, jobs["measure"].warned, jobs["comment"].code) == (1, False, 0), jobs
    assert answer(api.comments[0]["body"]) == ("1", "")
    again(bare)
    jobs = run_gitlab(file, bare, "main", "same", api.url, "secret")
    assert (jobs["measure"].code, jobs["comment"].code) == (0, 0), jobs
    notes = "/projects/12/merge_requests/7/notes"
    assert api.writes == [("POST", notes, "secret"), ("PUT", f"{notes}/0", "secret")]
    assert answer(api.comments[0]["body"]) == ("0", "")


def test_a_head_that_does_not_build_is_one_line_and_the_comment_has_it(service: Service, api: Api) -> None:
    jobs = run_github(CI / "github-actions.yml", service, "main", "broken", api.url)
    assert jobs["measure"].code == 4
    lines = [line for line in jobs["measure"].errors.splitlines() if line.startswith("compare.sh")]
    assert len(lines) == 1
    assert "'make' ended with 2" in lines[0]
    assert lines[0].removeprefix("compare.sh: ") in api.comments[0]["body"]
    assert "sum.c:1" in service.text("/artifacts/benchmark/head-build.txt")


@pytest.mark.parametrize(("choice", "code"), [("pass", 0), ("fail", 8)])
def test_undecided_is_in_the_comment_whatever_the_job_does(
    service: Service, api: Api, choice: str, code: int
) -> None:
    few = {"BENCH_UNDECIDED": choice, "BENCH_OPTIONS": ROUNDS.format(5)}
    undecided = replace(service, environment={**service.environment, **few})
    jobs = run_github(CI / "github-actions.yml", undecided, "main", "same", api.url)
    assert jobs["measure"].code == code, jobs
    assert answer(api.comments[0]["body"]) == (str(code), "undecided")


def test_undecided_is_a_warning_of_gitlab_and_without_a_token_there_is_no_comment(
    service: Service, api: Api
) -> None:
    few = {"BENCH_OPTIONS": ROUNDS.format(5)}
    undecided = replace(service, environment={**service.environment, **few})
    jobs = run_gitlab(CI / "gitlab-ci.yml", undecided, "main", "same", api.url, None)
    assert (jobs["measure"].code, jobs["measure"].warned) == (8, True), jobs
    assert list(jobs) == ["measure"]
    assert api.requests == []


def test_a_fork_gets_its_verdict_in_the_summary_and_writes_nothing(service: Service, api: Api) -> None:
    jobs = run_github(CI / "github-actions.yml", service, "main", "slower", api.url, fork=True)
    assert jobs["measure"].code == 1, jobs
    assert list(jobs) == ["measure"]
    assert answer(jobs["measure"].summary) == ("1", "")
    assert api.requests == []


NIGHT = "bash /tree/ci/nightly.sh /night.settings"
SETTINGS = f"""
BENCH_URL=/origin.git
BENCH_BRANCH=nights
BENCH_STATE=/night
BENCH_BUILD=make
BENCH_RUN='sum: {{tree}}/sum 1000'
BENCH_OPTIONS='{ROUNDS.format(5)}'
BENCH_METRIC=rounds
BENCH_NOTIFY=/notify
"""


@pytest.fixture
def nights(service: Service) -> Service:
    """A machine with the crontab's line; what it notifies of is in /notified."""
    push(service, "nights", f"{FAST}// 1\n", 1, "main~1")
    service.root.write("/night.settings", SETTINGS)
    service.root.write("/notify", '#!/bin/sh\necho "$APEVENT $APREASON" >>/notified\n', 0o755)
    return service


def night(service: Service, before: str = "") -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = service.shell(
        before + NIGHT, "/", {**service.environment, "PATH": f"{service.path}:/usr/sbin:/sbin"}
    )
    return done


def test_of_two_nights_at_once_one_measures_and_results_are_stored_by_commit(nights: Service) -> None:
    held = night(nights, "mkdir /night; exec 8>/night/lock; flock 8; ")
    assert (held.returncode, held.stdout, held.stderr.count("\n")) == (5, "", 1), held
    for _ in range(2):
        done = night(nights)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), log_of(nights)
    with open_store(str(nights.root.path("/night/store.sqlite"))) as store:
        entries = store.history("sum", "rounds")
    assert len({entry.commit for entry in entries}) == 1
    assert [(entry.branch, len(entry.values)) for entry in entries] == [("nights", 5)] * 2
    assert nights.text("/notified") == ""


def test_a_step_that_lasts_gives_alarm(nights: Service) -> None:
    """The nights before are made from the first one, since what is measured on one day has one level."""
    assert night(nights).returncode == 0, log_of(nights)
    with open_store(str(nights.root.path("/night/store.sqlite"))) as store:
        (entry,) = store.history("sum", "rounds")
        store.forget(entry.result)
        noise = np.random.default_rng(1)
        level = float(np.mean(entry.values))
        committed = entry.committed or entry.measured
        fill(
            store,
            [
                replace(
                    entry,
                    commit=f"{ago:040x}",
                    committed=committed - timedelta(days=ago),
                    measured=entry.measured - timedelta(days=ago),
                    values=tuple((1.3 if ago < 4 else 1.0) * level * np.exp(0.01 * noise.standard_normal(5))),
                    source=f"/night/results/{ago}",
                )
                for ago in range(1, 25)
            ],
        )
    push(nights, "nights", SLOW, 2)
    done = night(nights)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), log_of(nights)
    assert nights.text("/notified").startswith("failure sum: ALERT")


def test_a_night_whose_commit_does_not_build_is_notified(nights: Service) -> None:
    push(nights, "nights", "int main(", 2)
    done = night(nights)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1), log_of(nights)
    assert "does not build" in nights.text("/notified")


def log_of(service: Service) -> str:
    return str(service.shell("tail -n 40 /night/log/2*", "/", {}).stdout)
