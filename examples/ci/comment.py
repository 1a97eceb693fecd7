#!/usr/bin/env python3
"""comment.py FILE [NAME]: puts the text of FILE on the pull or merge request as one comment.

Later runs of the same NAME (default: bench) replace it.

GitHub: GITHUB_API_URL, GITHUB_REPOSITORY, BENCH_PULL_REQUEST (its number), GITHUB_TOKEN (with pull-requests: write).
GitLab: CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID and BENCH_TOKEN, of a project, with the scope api.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MARK = "<!-- comment of etude {} -->"
PAGE = 100
LONGEST = 65_000
"""Characters: GitHub takes 65,536."""


class Failed(Exception):
    """One line: what was requested, and what the service answered."""


def call(method: str, url: str, headers: dict[str, str], body: dict[str, str] | None = None) -> Any:
    """The service's answer."""
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, sent, {**headers, "Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Failed(f"{method} {url}: {error.code} {error.reason}: may the token write comments?") from error
    except (OSError, ValueError) as error:
        raise Failed(f"{method} {url}: {error}") from error


def pages(url: str, headers: dict[str, str]) -> Iterator[dict[str, Any]]:
    """All comments, the oldest first."""
    number, found = 1, [{}]
    while found:
        found = call("GET", f"{url}?per_page={PAGE}&page={number}", headers)
        yield from found
        number += 1


def on_github(text: str, mark: str) -> None:
    """Only a bot's comment is replaced: anybody may write the mark."""
    headers = {
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Accept": "application/vnd.github+json",
    }
    issues = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{os.environ['BENCH_PULL_REQUEST']}/comments"
    for each in pages(comments, headers):
        if mark in each["body"] and each["user"]["type"] == "Bot":
            call("PATCH", f"{issues}/comments/{each['id']}", headers, {"body": text})
            return
    call("POST", comments, headers, {"body": text})


def on_gitlab(text: str, mark: str) -> None:
    """Only the token's own comment is replaced."""
    headers = {"PRIVATE-TOKEN": os.environ["BENCH_TOKEN"]}
    api = os.environ["CI_API_V4_URL"]
    request = (
        f"{api}/projects/{os.environ['CI_PROJECT_ID']}/merge_requests/{os.environ['CI_MERGE_REQUEST_IID']}"
    )
    mine = call("GET", f"{api}/user", headers)["id"]
    for each in pages(f"{request}/notes", headers):
        if mark in each["body"] and each["author"]["id"] == mine:
            call("PUT", f"{request}/notes/{each['id']}", headers, {"body": text})
            return
    call("POST", f"{request}/notes", headers, {"body": text})


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print("usage: comment.py FILE [NAME]", file=sys.stderr)
        return 2
    mark = MARK.format(sys.argv[2] if len(sys.argv) == 3 else "bench")
    try:
        text = f"{mark}\n{Path(sys.argv[1]).read_text(encoding='utf-8')}"
        if len(text) > LONGEST:
            text = text[: text.rindex("\n", 0, LONGEST)] + "\n\nThe rest is in the job's files."
        (on_github if "GITHUB_REPOSITORY" in os.environ else on_gitlab)(text, mark)
    except KeyError as missing:
        print(f"comment.py: {missing.args[0]} is not set", file=sys.stderr)
        return 2
    except (OSError, Failed) as error:
        print(f"comment.py: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
