"""The files of examples/ci without a run: they fit the schemas of their services, and grant no more than they need."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from support.ci_api import Api, serving
from support.places import EXAMPLES

pytestmark = [pytest.mark.beside, pytest.mark.quick]

CI = EXAMPLES / "ci"
GITHUB, GITLAB = CI / "github-actions.yml", CI / "gitlab-ci.yml"


@pytest.mark.parametrize(
    ("file", "schema"),
    [(GITHUB, "vendor.github-workflows"), (GITLAB, "vendor.gitlab-ci")],
    ids=["GitHub", "GitLab"],
)
def test_a_file_fits_its_services_schema_and_one_with_a_mistake_does_not(
    file: Path, schema: str, tmp_path: Path
) -> None:
    pytest.importorskip("check_jsonschema")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(file.read_text().replace("timeout", "time-out"))
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    codes = [
        subprocess.run([*check, each], capture_output=True, check=False).returncode for each in (file, wrong)
    ]
    assert codes == [0, 1]


def test_the_job_that_runs_the_requests_code_may_write_nothing_and_gets_no_token() -> None:
    workflow = yaml.safe_load(GITHUB.read_text())
    assert workflow["permissions"] == {}
    assert workflow[True] == "pull_request"  # YAML 1.1 takes the key `on` for a boolean
    jobs = workflow["jobs"]
    assert jobs["measure"]["permissions"] == {"contents": "read"}
    assert jobs["comment"]["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "token" not in str(jobs["measure"])
    checkouts = [s for job in jobs.values() for s in job["steps"] if "checkout" in s.get("uses", "")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False, False]


def test_actions_are_named_by_commits_and_no_expression_stands_in_a_script() -> None:
    steps = [step for job in yaml.safe_load(GITHUB.read_text())["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert [each for each in actions if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", each)] == []
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as made:
        yield made


def test_a_comment_is_found_on_any_page_and_one_of_a_person_is_left_alone(api: Api, tmp_path: Path) -> None:
    mark = "<!-- comment of etude bench -->"
    person = {"user": {"type": "User"}, "body": f"{mark} mine"}
    api.comments = [{"id": n, **person} for n in range(150)]
    api.comments[140] = {"id": 140, "user": {"type": "Bot"}, "body": f"{mark} old"}
    file = tmp_path / "comment.md"
    file.write_text("new\n" + "x\n" * 40_000)
    words = {
        "GITHUB_API_URL": api.url,
        "GITHUB_REPOSITORY": "a/b",
        "BENCH_PULL_REQUEST": "3",
        "GITHUB_TOKEN": "t",
    }
    done = comment(file, words)
    assert done.returncode == 0, done.stderr
    assert [request[:2] for request in api.writes] == [("PATCH", "/repos/a/b/issues/comments/140")]
    assert len(api.comments[140]["body"]) < 65_536
    assert [each for each in api.comments if each["body"] != f"{mark} mine"] == [api.comments[140]]


def test_comments_of_other_names_are_left_alone(api: Api, tmp_path: Path) -> None:
    file = tmp_path / "comment.md"
    file.write_text("verdicts")
    words = {"CI_API_V4_URL": api.url, "CI_PROJECT_ID": "1", "CI_MERGE_REQUEST_IID": "2", "BENCH_TOKEN": "t"}
    for name in ("bench", "claims", "claims", "bench"):
        assert comment(file, words, name).returncode == 0
    assert len(api.comments) == 2


def comment(file: Path, environment: dict[str, str], *name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CI / "comment.py", file, *name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_service_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        file = tmp_path / "comment.md"
        file.write_text("text")
        port = unused.getsockname()[1]
        words = {
            "CI_API_V4_URL": f"http://127.0.0.1:{port}",
            "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_IID": "2",
        }
        assert (comment(file, words).returncode, comment(file, words).stderr.count("\n")) == (2, 1)
        done = comment(file, {**words, "BENCH_TOKEN": "secret"})
    assert (done.returncode, done.stderr.count("\n"), "secret" in done.stderr) == (5, 1, False)
