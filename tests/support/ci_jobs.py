"""Jobs of GitHub Actions and GitLab CI, run as these services run them: their steps in order, in a bare root.

What the services do themselves is done here: variables, expressions, conditions, a fresh checkout of a bare repository
for each job, and files that jobs hand on. What a step runs is run as it is written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bare_root import BareRoot

REPOSITORY = "someone/project"
COMMANDS = "/tmp/steps"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Job:
    """A job that has ended."""

    code: int = 0
    """Exit code of the first step that failed."""
    log: str = ""
    errors: str = ""
    summary: str = ""
    """Markdown that GitHub shows of the run."""
    warned: bool = False
    """GitLab: it failed in a way that the pipeline forgives."""


@dataclass(frozen=True)
class Service:
    """A root with a bare repository at /origin.git, in which jobs run."""

    root: BareRoot
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of the runner, and what its user has edited in the file."""
    path: str = "/usr/local/bin:/usr/bin:/bin"

    def shell(self, script: str, where: str, variables: Mapping[str, str]) -> Any:
        """Run lines by `bash -e`, in a directory."""
        self.root.write(COMMANDS, script)
        env = {name: str(value) for name, value in variables.items()}
        # The root's own programs are found by the PATH that it has for them.
        path = env.pop("PATH", self.path)
        line = f"mkdir -p {where} && cd {where} && PATH={path} exec bash -e {COMMANDS}"
        return self.root.run("bash", "-c", line, env=env, network=True, check=False)

    def text(self, path: str) -> str:
        """A file of the root; empty if it is missing."""
        file = self.root.path(path)
        return file.read_text() if file.exists() else ""


def run_github(
    workflow: Path, service: Service, base: str, head: str, api: str, fork: bool = False
) -> dict[str, Job]:
    """The jobs of a workflow for a pull request that began at branch `base`; those that were skipped are left out."""
    document = yaml.safe_load(workflow.read_text())
    commits = {
        name: service.shell(f"git -C /origin.git rev-parse {name}", "/", {}).stdout.strip()
        for name in (base, head)
    }
    owner = "stranger/project" if fork else REPOSITORY
    pull = {
        "number": 7,
        "base": {"sha": commits[base]},
        "head": {"sha": commits[head], "repo": {"full_name": owner}},
    }
    facts = {
        "github": {
            "event": {"pull_request": pull},
            "repository": REPOSITORY,
            "token": "of-the-run",
            "sha": commits[head],
        }
    }
    done: dict[str, Job] = {}
    for name, job in document["jobs"].items():
        failed = any(
            done[need].code for need in [job.get("needs", [])] if isinstance(need, str) and need in done
        )
        if not _holds(job.get("if"), facts, failed):
            continue
        own = {"GITHUB_API_URL": api, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true", "CI": "true"}
        files = {
            each: f"/runner/{name}/{each}" for each in ("GITHUB_PATH", "GITHUB_STEP_SUMMARY", "RUNNER_TEMP")
        }
        variables = {
            **own,
            **files,
            **_values(document.get("env", {}), facts),
            **_values(job.get("env", {}), facts),
        }
        done[name] = _steps(
            job["steps"], service, f"/jobs/{name}", {**variables, **service.environment}, facts
        )
        done[name].summary = service.text(files["GITHUB_STEP_SUMMARY"])
    return done


def _steps(
    steps: list[dict[str, Any]],
    service: Service,
    where: str,
    variables: Mapping[str, str],
    facts: Mapping[str, Any],
) -> Job:
    job = Job()
    service.shell(f"mkdir -p {variables['RUNNER_TEMP']}", "/", {})
    for step in steps:
        if not _holds(step.get("if"), facts, bool(job.code)):
            continue
        added = service.text(variables["GITHUB_PATH"]).split()
        path = ":".join([*reversed(added), service.path])
        script = (
            step["run"]
            if "run" in step
            else _action(step["uses"], _values(step.get("with", {}), facts), facts)
        )
        env = {**variables, "PATH": path, **_values(step.get("env", {}), facts)}
        _add(job, service.shell(script, where, env))
    return job


def _action(uses: str, options: Mapping[str, str], facts: Mapping[str, Any]) -> str:
    """What an action of GitHub's own does, as a script."""
    actions: dict[str, Callable[[], str]] = {
        "checkout": lambda: _checkout(options.get("ref") or facts["github"]["sha"]),
        "upload-artifact": lambda: (
            f"mkdir -p /artifacts && cp -r {options['path']} /artifacts/{options['name']}"
        ),
        "download-artifact": lambda: f"cp -r /artifacts/{options['name']} {options['path']}",
    }
    return actions[uses.removeprefix("actions/").partition("@")[0]]()


def _checkout(commit: str) -> str:
    return f"git clone --quiet --no-checkout /origin.git . && git checkout --quiet --detach {shlex.quote(commit)}"


def run_gitlab(
    file: Path, service: Service, base: str, head: str, api: str, token: str | None
) -> dict[str, Job]:
    """The jobs of a merge request's pipeline; those that no rule adds are left out."""
    document = yaml.safe_load(file.read_text())
    ask = f"cd /origin.git && git merge-base {base} {head} && git rev-parse {head}"
    fork_point, commit = service.shell(ask, "/", {}).stdout.split()
    own = {
        "CI": "true",
        "CI_API_V4_URL": api,
        "CI_PROJECT_ID": "12",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": fork_point,
        "CI_COMMIT_SHA": commit,
        "PATH": service.path,
        **({"BENCH_TOKEN": token} if token else {}),
    }
    done: dict[str, Job] = {}
    for name, job in document.items():
        failed = any(done[need].code and not done[need].warned for need in job.get("needs", []))
        rule = next((rule for rule in job["rules"] if _adds(rule["if"], own)), None)
        if rule is None or (failed and rule.get("when") != "always"):
            continue
        variables = {**own, **job.get("variables", {}), **service.environment}
        where = f"/jobs/{name}"
        done[name] = Job()
        handed = "".join(f"\ncp -r /artifacts/{need}/. ." for need in job.get("needs", []))
        _add(done[name], service.shell(_checkout(commit) + handed, where, variables))
        _add(done[name], service.shell("\n".join(job["script"]), where, variables))
        paths = " ".join(job.get("artifacts", {}).get("paths", []))
        if paths:
            keep = f"mkdir -p /artifacts/{name} && cp -r --parents {paths} /artifacts/{name}"
            _add(done[name], service.shell(keep, where, variables))
        done[name].warned = done[name].code == job.get("allow_failure", {}).get("exit_codes", 0) != 0
    return done


def _add(job: Job, ended: Any) -> None:
    job.log += ended.stdout
    job.errors += ended.stderr
    job.code = job.code or ended.returncode


def _values(given: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, str]:
    """The values with their expressions replaced."""
    return {
        name: EXPRESSION.sub(lambda m: str(_fact(m[1], facts)), str(value)) for name, value in given.items()
    }


def _fact(name: str, facts: Any) -> Any:
    for part in name.split("."):
        facts = facts[part]
    return facts


def _holds(condition: str | None, facts: Mapping[str, Any], failed: bool) -> bool:
    """Whether a job or a step of GitHub's runs: a conjunction of comparisons, where nothing is cancelled."""
    if condition is None:
        return not failed
    terms = EXPRESSION.sub(r"\1", condition).split("&&")
    return all(_term(term.strip(), facts) for term in terms)


def _term(term: str, facts: Mapping[str, Any]) -> bool:
    if term in ("!cancelled()", "always()"):
        return True
    left, right = term.split(" == ")
    return bool(_fact(left, facts) == _fact(right, facts))


def _adds(condition: str, variables: Mapping[str, str]) -> bool:
    """Whether a rule of GitLab's holds: a conjunction of variables that are set, or have a value."""

    def terms() -> Iterator[bool]:
        for term in condition.split(" && "):
            name, _, value = term.partition(" == ")
            known = variables.get(name.removeprefix("$"))
            yield known == value.strip('"') if value else bool(known)

    return all(terms())
